"""Validation of JSON by the schemas that `schema --json` prints."""

from __future__ import annotations

import functools

import pytest

from nsys_insight.cli import json_schema


def validate(document, *names):
    """Validate an object by the schemas of these names."""
    for name in names:
        get_validator(name).validate(document)


@functools.cache
def get_validator(name):
    jsonschema = pytest.importorskip("jsonschema")
    return jsonschema.Draft202012Validator(json_schema.get_schema(name))
