//! Texts about a request, of which only the first are kept: a policy may have any number of parameter objects, and each
//! may produce some.

/// Maximum number of warnings, failures or values of an annotation for one request.
pub const MAX_FAILURES: usize = 50;

/// The first texts of possibly very many, and how many were left out.
#[derive(Debug, Default)]
pub struct FirstFew {
    kept: Vec<String>,
    left_out: usize,
}

impl FirstFew {
    /// Adds a text, which is made only if it is kept.
    pub fn add(&mut self, text: impl FnOnce() -> String) {
        match self.kept.len() < MAX_FAILURES {
            true => self.kept.push(text()),
            false => self.left_out += 1,
        }
    }

    /// Adds a text unless it is one of those kept.
    pub fn add_new(&mut self, text: String) {
        if !self.kept.contains(&text) {
            self.add(|| text);
        }
    }

    /// Returns the texts that were kept.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }

    /// Returns how many texts were left out; not all of them need to be different.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Returns the texts, and a remark at the end if some were left out.
    pub fn with_remark(&self, remark: impl FnOnce(usize) -> String) -> Vec<String> {
        let mut all = self.kept.clone();
        if self.left_out > 0 {
            all.push(remark(self.left_out));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted_and_not_made() {
        let mut few = FirstFew::default();
        for number in 0..MAX_FAILURES {
            few.add(|| number.to_string());
        }
        let all = few.with_remark(|more| panic!("{more} left out"));
        assert_eq!(all.len(), MAX_FAILURES);
        few.add(|| panic!("it is made"));
        few.add_new("7".to_owned());
        few.add_new("new".to_owned());
        assert_eq!((few.kept().len(), few.left_out()), (MAX_FAILURES, 2));
        let all = few.with_remark(|more| format!("{more} more"));
        assert_eq!(all.last().map(String::as_str), Some("2 more"));
    }
}
