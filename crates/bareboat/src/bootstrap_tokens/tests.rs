//! The form of bootstrap tokens and of their groups.

use super::*;

#[test]
fn tokens_and_groups_have_one_form() {
    assert_eq!(
        parts("abc123.0123456789abcdef"),
        Some(("abc123", "0123456789abcdef"))
    );
    for other in [
        "abc123",
        "abc12.0123456789abcdef",
        "abc123.0123456789abcde",
        "ABC123.0123456789abcdef",
        "abc123.0123456789abcdef.x",
        "abc/23.0123456789abcdef",
    ] {
        assert_eq!(parts(other), None, "{other}");
    }
    assert!(is_group("system:bootstrappers:kubeadm:default-node-token"));
    for other in [
        "system:bootstrappers",
        "system:bootstrappers:",
        "system:bootstrappers:a-",
        "system:bootstrappers:A",
        "system:bootstrappersx:a",
        "system:masters",
    ] {
        assert!(!is_group(other), "{other}");
    }
    let long = format!("system:bootstrappers:{}", "a".repeat(257));
    assert!(!is_group(&long));
}
