"""All profiles, by the names that `compare` shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracker.errors import UsageError
from tracker.printable import quoted
from tracker.profiles import (
    calico,
    cilium,
    flannel,
    k3s,
    kep1664,
    kube_vip,
    kubelet,
    openshift,
    ovn_kubernetes,
    talos,
)
from tracker.profiles.choice import Choice, Options, Profile, ProfileError
from tracker.profiles.go_regexp import UntranslatedError
from tracker.profiles.host import Host

_MODULES = (
    kubelet,
    kep1664,
    openshift,
    calico,
    talos,
    cilium,
    flannel,
    k3s,
    kube_vip,
    ovn_kubernetes,
)
PROFILES: dict[str, Profile] = {
    name: profile for module in _MODULES for name, profile in module.PROFILES.items()
}


def parse_options(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """ "calico.method=first-found" and the like, by profile.

    A name stands for all profiles that begin with it and have the option: "talos.valid-subnets"
    for talos-v1 and talos-v2. Raises UsageError.
    """
    found: dict[str, dict[str, str]] = {name: {} for name in PROFILES}
    for text in given:
        key, equals, value = text.partition("=")
        name, _, option = key.partition(".")
        meant = [n for n in PROFILES if n == name or n.startswith(f"{name}-")]
        if not meant or not equals:
            raise UsageError(
                f"compare: --option {quoted(text)}; allowed: PROFILE.NAME=VALUE, of "
                f"{', '.join(PROFILES)}"
            )
        taking = [n for n in meant if option in PROFILES[n].options]
        if not taking:
            known = ", ".join(dict.fromkeys(o for n in meant for o in PROFILES[n].options))
            raise UsageError(f"compare: --option {quoted(text)}: {name} takes {known}")
        for each in taking:
            found[each][option] = value
    return found


def choose_all(host: Host, given: Mapping[str, Mapping[str, str]]) -> dict[str, Choice]:
    """What every profile would choose."""
    return {name: choose(name, host, given.get(name, {})) for name in PROFILES}


def choose(name: str, host: Host, given: Mapping[str, str]) -> Choice:
    """What one profile would choose. Raises UsageError for an option."""
    try:
        return PROFILES[name].choose(host, Options(name, given))
    except ProfileError as error:
        return Choice(error=str(error))
    except UntranslatedError as error:
        raise UsageError(
            f"compare: an option of {name}: {error}; allowed: an expression that does without"
        ) from None
