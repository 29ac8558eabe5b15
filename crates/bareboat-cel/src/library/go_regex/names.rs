//! The names of character sets in `\p{…}`: general categories and scripts.
//!
//! Go supports only these: no binary properties such as `Emoji`, no `sc=Greek`.

use super::class::Ranges;
use parking_lot::Mutex;
use regex_syntax::hir::{Class, HirKind};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Short names of categories.
const CATEGORIES: &str = "C Cc Cf Cn Co Cs L LC Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs";

/// Long names of categories.
const LONG_NAMES: &str = "Cased_Letter=LC Close_Punctuation=Pe Combining_Mark=M Connector_Punctuation=Pc Control=Cc \
Currency_Symbol=Sc Dash_Punctuation=Pd Decimal_Number=Nd Enclosing_Mark=Me Final_Punctuation=Pf Format=Cf \
Initial_Punctuation=Pi Letter=L Letter_Number=Nl Line_Separator=Zl Lowercase_Letter=Ll Mark=M Math_Symbol=Sm \
Modifier_Letter=Lm Modifier_Symbol=Sk Nonspacing_Mark=Mn Number=N Open_Punctuation=Ps Other=C Other_Letter=Lo \
Other_Number=No Other_Punctuation=Po Other_Symbol=So Paragraph_Separator=Zp Private_Use=Co Punctuation=P \
Separator=Z Space_Separator=Zs Spacing_Mark=Mc Surrogate=Cs Symbol=S Titlecase_Letter=Lt Unassigned=Cn \
Uppercase_Letter=Lu cntrl=Cc digit=Nd punct=P";

const SCRIPTS: &str = "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali \
Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee \
Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan \
Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gunjala_Gondi \
Gurmukhi Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi \
Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi Khitan_Small_Script Khmer Khojki \
Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean \
Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian \
Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki \
Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur \
Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan \
Saurashtra Sharada Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Syloti_Nagri Syriac \
Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto \
Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square";

/// Maps each name to its name in `regex-syntax`.
static NAMES: LazyLock<HashMap<String, String>> = LazyLock::new(|| {
    let mut names = HashMap::new();
    for script in SCRIPTS.split_whitespace() {
        names.insert(plain(script), format!("sc={script}"));
    }
    for pair in LONG_NAMES.split_whitespace() {
        let (long, short) = pair.split_once('=').unwrap_or((pair, pair));
        names.insert(plain(long), format!("gc={short}"));
    }
    for category in CATEGORIES.split_whitespace() {
        names.insert(plain(category), format!("gc={category}"));
    }
    names
});

/// The name of a character set, and whether it includes other cases.
type Key = (&'static str, bool);

/// The sets used so far; their number is limited by the number of names.
static TABLES: LazyLock<Mutex<HashMap<Key, Arc<Ranges>>>> = LazyLock::new(Mutex::default);

/// Returns the characters of a name, with their other cases if `folded`. All patterns share the
/// result.
pub(super) fn table(name: &str, folded: bool) -> Option<Arc<Ranges>> {
    let plain = plain(name);
    match plain.as_str() {
        "any" => return Some(Arc::new(Ranges::new(vec![(0, 0x10FFFF)]))),
        "ascii" => {
            let ascii = Ranges::new(vec![(0, 0x7F)]);
            return Some(Arc::new(if folded { ascii.folded() } else { ascii }));
        }
        "assigned" => return table("Cn", false).map(|table| Arc::new(table.negated())),
        _ => {}
    }
    let query = NAMES.get(&plain)?;
    if let Some(table) = TABLES.lock().get(&(query.as_str(), folded)) {
        return Some(table.clone());
    }
    let ranges = ranges(query)?;
    let ranges = Arc::new(if folded { ranges.folded() } else { ranges });
    TABLES.lock().insert((query, folded), ranges.clone());
    Some(ranges)
}

fn ranges(query: &str) -> Option<Ranges> {
    if query == "gc=Cs" {
        return Some(Ranges::new(vec![(0xD800, 0xDFFF)]));
    }
    let parsed = regex_syntax::Parser::new()
        .parse(&format!("\\p{{{query}}}"))
        .ok()?;
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(Ranges::of_class(&class)),
        HirKind::Literal(literal) => {
            let only = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(Ranges::new(vec![(only.into(), only.into())]))
        }
        _ => None,
    }
}

/// Normalises a name: case, spaces, hyphens and underscores do not count.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|letter| !matches!(letter, '_' | '-' | ' '))
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_characters() {
        for name in NAMES.keys() {
            assert!(
                table(name, false).is_some_and(|table| !table.as_slice().is_empty()),
                "{name}"
            );
            assert!(table(name, true).is_some(), "{name}");
        }
        assert!(table("Emoji", false).is_none());
    }
}
