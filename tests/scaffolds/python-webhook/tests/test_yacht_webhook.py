"""Tests of the rules for yachts, as an API server asks about them."""

import base64
import json

import yacht_webhook
from serve import review


def asked(action, name):
    request = {"uid": "1", "object": {"metadata": {"name": name}}}
    return review(action, yacht_webhook, request)["response"]


def test_a_label_is_added():
    response = asked("mutate", "first")
    patch = json.loads(base64.b64decode(response["patch"]))
    assert patch[0]["value"]["metadata"]["labels"] == {"reviewed-by": "guard"}


def test_a_forbidden_name_is_refused():
    assert asked("validate", "first")["allowed"] is True
    refused = asked("validate", "forbidden-one")
    assert refused["allowed"] is False and "must not begin" in refused["status"]["message"]
