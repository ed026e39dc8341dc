"""What commands load into the kernel beside a source, and what they say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tracker.cli.follow import Tracing, attach_trace, source_text
from tracker.config import Config

if TYPE_CHECKING:
    from tracker.capture.base import Source

CONFIG = Config("n1")


class Some:
    """As much of a source as is looked at."""

    def __init__(self, name: str, **more: Any) -> None:
        self.name = name
        self.__dict__.update(more)


def some(name: str, **more: Any) -> Source:
    return cast("Source", Some(name, **more))


def test_only_the_filter_in_the_kernel_is_traced() -> None:
    assert attach_trace(some("netlink"), CONFIG) == Tracing("")


def test_a_trace_that_is_not_wanted_is_not_tried() -> None:
    config = CONFIG._replace(capture=CONFIG.capture._replace(trace="off"))
    trace = attach_trace(some("bpf", maps=None), config)
    assert (trace.way, trace.probes) == ("", ())
    assert trace.passed_over == ("trace: switched off by the configuration",)
    trace.close()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (some("bpf", loader="libbpf", attribution=True), "source bpf, loader libbpf"),
        (
            some("bpf", loader="bcc", attribution=False),
            "source bpf, loader bcc, without names of processes",
        ),
        (some("netlink"), "source netlink, without names of processes"),
    ],
    ids=["libbpf", "bcc", "netlink"],
)
def test_a_source_is_told_in_a_few_words(source: Source, text: str) -> None:
    assert source_text(source) == text
