//! Quantities: which texts are read, how they compare, and their canonical form.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

#[test]
fn quantities_print_the_canonical_text_of_kubernetes() {
    for (text, canonical) in [
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("+1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("100Ki", "100Ki"),
        ("1Ki", "1Ki"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("1023Ki", "1023Ki"),
        ("1500Mi", "1500Mi"),
        ("1000", "1k"),
        ("1000000", "1M"),
        ("1k", "1k"),
        ("0.001", "1m"),
        ("0.1m", "100u"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e6", "12e6"),
        ("100e3", "100e3"),
        ("1e-3", "1e-3"),
        ("1e0", "1"),
        ("0001", "1"),
        ("1.", "1"),
        (".5", "500m"),
        ("-1.5Gi", "-1536Mi"),
        ("5E", "5E"),
        ("8Ei", "9223372036854775807"),
        ("100Ei", "9223372036854775807"),
        ("0.1Gi", "107374182400m"),
        ("0.5Mi", "512Ki"),
        ("0.000001Ki", "1024u"),
        ("1200m", "1200m"),
        ("2000m", "2"),
        ("123456789", "123456789"),
        ("10M", "10M"),
        ("1100k", "1100k"),
        ("1E", "1E"),
        ("1000E", "1000E"),
    ] {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity.to_string(), canonical, "{text}");
        let again = Quantity::parse(canonical).unwrap();
        assert_eq!(again, quantity, "{text}");
        assert_eq!(again.to_string(), canonical, "{text}");
    }
}

#[test]
fn text_that_is_not_a_quantity_is_refused() {
    use QuantityError::{Form, Number, Overflow, Suffix};
    for (text, error) in [
        ("", Form),
        ("-", Form),
        (".", Form),
        ("1.2.3", Form),
        ("abc", Form),
        ("1 Gi", Form),
        ("1é", Form),
        ("1Gi ", Form),
        ("1X", Form),
        ("1ki", Suffix),
        ("1K", Suffix),
        ("1e", Suffix),
        ("1mi", Suffix),
        ("1Gi3", Suffix),
        ("1e99999999999", Suffix),
        ("--1", Form),
        ("1e100", Overflow),
        ("1e2147483647", Overflow),
    ] {
        assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
    }
    assert_eq!(Quantity::parse(&"9".repeat(40)).unwrap_err(), Number);
    assert_eq!(
        Quantity::parse("1e-2147483648").unwrap().to_string(),
        "1e-9"
    );
}

#[test]
fn amounts_compare_and_add_exactly() {
    let q = |text: &str| Quantity::parse(text).unwrap();
    assert_eq!(q("1"), q("1000m"));
    assert_eq!(q("1Ki"), q("1024"));
    assert!(q("1Gi") > q("1G"));
    assert!(q("-1") < q("0"));
    assert_eq!(q("100m").checked_add(q("0.9")).unwrap().to_string(), "1");
    assert_eq!(
        q("1Gi").checked_sub(q("512Mi")).unwrap().to_string(),
        "512Mi"
    );
    assert_eq!(
        Quantity::ZERO.checked_add(q("2Gi")).unwrap().to_string(),
        "2Gi"
    );
    assert_eq!(q("1Gi").checked_sub(q("1Gi")).unwrap().to_string(), "0");
    assert_eq!(q("3").negated().to_string(), "-3");
}

#[test]
fn amounts_convert_to_numbers() {
    let q = |text: &str| Quantity::parse(text).unwrap();
    assert_eq!(q("2k").as_i64(), Some(2000));
    assert_eq!(q("1.5").as_i64(), None);
    assert_eq!((q("1.5").units(), q("-1.5").units()), (2, -2));
    assert_eq!((q("1.0005").millis(), q("250m").millis()), (1001, 250));
    assert_eq!(q("100E").units(), i64::MAX);
    assert!((q("1.5Gi").as_f64() - 1_610_612_736.0).abs() < 1e-6);
    assert!((q("250m").as_f64() - 0.25).abs() < 1e-12);
    assert_eq!(
        Quantity::from_millis(1500, Format::Decimal).to_string(),
        "1500m"
    );
    assert_eq!(
        Quantity::from_units(1 << 30, Format::Binary).to_string(),
        "1Gi"
    );
}

proptest! {
    #[test]
    fn a_printed_quantity_parses_to_the_same_quantity(number in "-?[0-9]{1,12}(\\.[0-9]{0,12})?", suffix in "(|n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|e3|E-6)") {
        if let Ok(quantity) = Quantity::parse(&format!("{number}{suffix}")) {
            let printed = quantity.to_string();
            let again = Quantity::parse(&printed).unwrap();
            prop_assert_eq!(again, quantity);
            prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic_the_parser(text in "[-+0-9.eEinumkKMGTPé ]{0,60}") {
        let _ = Quantity::parse(&text).map(|quantity| (quantity.to_string(), quantity.units(), quantity.as_f64()));
    }
}
