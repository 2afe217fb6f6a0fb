"""JSON held to the schemas that `schema --json` prints."""

from __future__ import annotations

import functools

import pytest

from nsys_insight.cli import json_schema


def valid(found, *names):
    """Hold an object to the schemas of these names."""
    for name in names:
        validator(name).validate(found)


@functools.cache
def validator(name):
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft202012Validator(json_schema.schema_of(name))
