"""The rules for yachts. They see objects as JSON, so that they work for every version."""


def mutate(obj):
    """Changes an object before it is stored."""
    labels = obj["metadata"].setdefault("labels", {})
    labels.setdefault("reviewed-by", "guard")


def validate(obj, old):
    """Returns why an object is refused, or None."""
    if obj["metadata"].get("name", "").startswith("forbidden"):
        return 'names must not begin with "forbidden"'
    return None
