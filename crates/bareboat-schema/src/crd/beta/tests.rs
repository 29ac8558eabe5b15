//! The advice for a v1beta1 definition.

use super::*;
use crate::testing::yaml;

#[test]
fn advice_covers_only_the_fields_the_manifest_uses() {
    let check = |text: &str, named: &[&str], absent: &[&str]| {
        let advice = advise_v1beta1(Some(&yaml(text)));
        for words in named {
            assert!(advice.contains(words), "{words} is not in {advice}");
        }
        for words in absent {
            assert!(!advice.contains(words), "{words} is in {advice}");
        }
    };
    check(
        "{spec: {group: a.b, version: v1, scope: Namespaced, names: {}, preserveUnknownFields: false, validation: {openAPIV3Schema: {properties: {}}}, additionalPrinterColumns: [{name: A, JSONPath: .a}], subresources: {status: {}}}}",
        &[
            "apiVersion: write apiextensions.k8s.io/v1;",
            "spec.versions: [{name: v1, served: true, storage: true",
            "spec.validation: move openAPIV3Schema",
            "write type: object at its root",
            "spec.subresources: move it",
            "spec.additionalPrinterColumns: move it",
            "write jsonPath",
        ],
        &["webhook", "spec.scope", "preserve", "each entry needs"],
    );
    check(
        "{spec: {versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}], version: v1, preserveUnknownFields: true, conversion: {strategy: Webhook, webhookClientConfig: {}, conversionReviewVersions: [v1beta1]}}}",
        &[
            "spec.version: remove it",
            "spec.conversion.webhookClientConfig: move it to spec.conversion.webhook.clientConfig",
            "spec.conversion.conversionReviewVersions: move it to spec.conversion.webhook.conversionReviewVersions",
            "spec.scope: write Namespaced",
            "spec.preserveUnknownFields: remove it",
        ],
        &[
            "spec.validation",
            "jsonPath",
            "type: object at",
            "each entry needs",
        ],
    );
    check(
        "{spec: rubbish}",
        &["each entry needs schema.openAPIV3Schema"],
        &["rubbish"],
    );
    check("[]", &["apiVersion: write"], &[]);
    assert!(advise_v1beta1(None).contains("JSONPath of additionalPrinterColumns"));
}
