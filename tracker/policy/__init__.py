"""Filters, criteria and modes, compiled into the table that the engines run."""
