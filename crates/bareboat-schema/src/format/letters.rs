//! Letters and symbols beyond ASCII, as host names may have them.

#[cfg(feature = "expressions")]
mod classes {
    //! Unicode's own classes.

    use regex::Regex;
    use std::sync::LazyLock;

    static LETTER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{L}$").expect("a class of one letter"));
    static LETTER_OR_SYMBOL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{S}]$").expect("a class of one character"));

    /// Returns whether a character is a letter.
    pub(crate) fn is_letter(character: char) -> bool {
        LETTER.is_match(character.encode_utf8(&mut [0; 4]))
    }

    /// Returns whether a character is a letter or a symbol.
    pub(crate) fn is_letter_or_symbol(character: char) -> bool {
        LETTER_OR_SYMBOL.is_match(character.encode_utf8(&mut [0; 4]))
    }
}

#[cfg(not(feature = "expressions"))]
mod classes {
    //! What the standard library knows: no symbols beyond ASCII, and marks count as letters.

    /// Returns whether a character is a letter.
    pub(crate) fn is_letter(character: char) -> bool {
        character.is_alphabetic()
    }

    /// Returns whether a character is a letter or a symbol.
    pub(crate) fn is_letter_or_symbol(character: char) -> bool {
        is_letter(character)
            || matches!(
                character,
                '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~'
            )
    }
}

pub(super) use classes::{is_letter, is_letter_or_symbol};
