//! Reads a Markdown page into the steps of its session.

/// How a step is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// All commands succeed.
    Succeeds,
    /// The last command fails.
    Fails,
    /// It is repeated until it succeeds.
    Eventually,
    /// It keeps running.
    Background,
}

/// A part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Commands, and their expected output if the page shows it.
    Run {
        manner: Manner,
        commands: String,
        expected: Option<String>,
    },
    /// A file to write.
    Write { name: String, text: String },
    /// Commands that are not run, with the reason.
    Skip { reason: String },
}

/// An action and the line where its block begins, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) line: usize,
    pub(crate) action: Action,
}

struct Block<'a> {
    line: usize,
    language: &'a str,
    words: &'a str,
    text: String,
}

/// Returns the steps of a page, or the line and the reason why it cannot be read.
pub(crate) fn steps(page: &str) -> Result<Vec<Step>, (usize, String)> {
    let mut steps: Vec<Step> = Vec::new();
    // Whether a block of expected output belongs to the last step.
    let mut open = false;
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        if line.starts_with('#') {
            open = false;
        }
        let indent = line.len() - line.trim_start().len();
        let Some(fence) = fence_of(line.trim_start()) else {
            continue;
        };
        let info = line.trim_start()[fence.len()..].trim();
        let mut text = String::new();
        loop {
            let Some((_, inner)) = lines.next() else {
                return Err((index + 1, "the block is not closed".to_owned()));
            };
            let trimmed = inner.trim();
            if trimmed.starts_with(fence) && trimmed.trim_start_matches('`').is_empty() {
                break;
            }
            let spaces = inner.len() - inner.trim_start().len();
            text.push_str(&inner[indent.min(spaces)..]);
            text.push('\n');
        }
        let (language, words) = info.split_once([' ', ',']).unwrap_or((info, ""));
        let line = index + 1;
        let block = Block {
            line,
            language,
            words,
            text,
        };
        open = take(block, open, &mut steps)?;
    }
    Ok(steps)
}

/// Returns the backticks that open a block.
fn fence_of(line: &str) -> Option<&str> {
    let ticks = line.len() - line.trim_start_matches('`').len();
    (ticks >= 3).then(|| &line[..ticks])
}

/// Adds the steps of a block. Returns whether expected output may follow.
fn take(block: Block<'_>, open: bool, steps: &mut Vec<Step>) -> Result<bool, (usize, String)> {
    let line = block.line;
    let (words, skip) = match block.words.split_once("skip=") {
        Some((words, reason)) => (words, Some(reason.trim().trim_matches('"').to_owned())),
        None => (block.words, None),
    };
    let words: Vec<&str> = words
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    if let Some(name) = words.iter().find_map(|word| word.strip_prefix("file=")) {
        let (name, text) = (name.to_owned(), block.text);
        let action = Action::Write { name, text };
        steps.push(Step { line, action });
        return Ok(false);
    }
    match block.language {
        "bash" | "sh" | "console" if skip.is_some() => {
            let reason = skip.unwrap_or_default();
            if reason.is_empty() {
                return Err((line, "skip= needs a reason".to_owned()));
            }
            let action = Action::Skip { reason };
            steps.push(Step { line, action });
            Ok(false)
        }
        "bash" | "sh" => {
            let manner = manner(&words).map_err(|word| (line, word))?;
            let commands = block.text;
            let expected = None;
            let action = Action::Run {
                manner,
                commands,
                expected,
            };
            steps.push(Step { line, action });
            Ok(true)
        }
        "console" => {
            let manner = manner(&words).map_err(|word| (line, word))?;
            console(line, manner, &block.text, steps);
            Ok(false)
        }
        "text" if open => {
            if let Some(Step {
                action: Action::Run { expected, .. },
                ..
            }) = steps.last_mut()
            {
                *expected = Some(block.text);
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

fn manner(words: &[&str]) -> Result<Manner, String> {
    match words {
        [] => Ok(Manner::Succeeds),
        ["fails"] => Ok(Manner::Fails),
        ["eventually"] => Ok(Manner::Eventually),
        ["background"] => Ok(Manner::Background),
        other => Err(format!(
            "{other:?} is not one of fails, eventually, background, skip=REASON, file=NAME"
        )),
    }
}

/// Adds one step per command of a `console` block. With `fails`, the last command fails.
fn console(line: usize, manner: Manner, text: &str, steps: &mut Vec<Step>) {
    let first = steps.len();
    for (offset, row) in text.lines().enumerate() {
        if let Some(command) = row.strip_prefix("$ ") {
            let manner = match manner {
                Manner::Fails => Manner::Succeeds,
                other => other,
            };
            let action = Action::Run {
                manner,
                commands: format!("{command}\n"),
                expected: None,
            };
            let line = line + 1 + offset;
            steps.push(Step { line, action });
            continue;
        }
        let Some(Action::Run {
            commands, expected, ..
        }) = steps[first..].last_mut().map(|step| &mut step.action)
        else {
            continue;
        };
        match row.strip_prefix("> ") {
            Some(more) if expected.is_none() => commands.push_str(&format!("{more}\n")),
            _ => {
                let expected = expected.get_or_insert_default();
                expected.push_str(&format!("{row}\n"));
            }
        }
    }
    if let Some(Action::Run { manner: last, .. }) =
        steps[first..].last_mut().map(|step| &mut step.action)
    {
        *last = manner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(manner: Manner, commands: &str, expected: Option<&str>) -> Action {
        Action::Run {
            manner,
            commands: commands.to_owned(),
            expected: expected.map(str::to_owned),
        }
    }

    fn actions(page: &str) -> Vec<Action> {
        let steps = steps(page).expect("a valid page");
        steps.into_iter().map(|step| step.action).collect()
    }

    #[test]
    fn blocks_become_steps_with_their_expected_output() {
        let page = "# T\n```bash\necho a\n```\nIt prints:\n```text\na\n```\n```text\nnot output\n```\n```bash fails\nfalse\n```\n## H\n```text\nother\n```\n";
        assert_eq!(
            actions(page),
            [
                run(Manner::Succeeds, "echo a\n", Some("a\n")),
                run(Manner::Fails, "false\n", None)
            ]
        );
    }

    #[test]
    fn console_blocks_are_split_by_command() {
        let page = "```console fails\n$ cat <<E\n> x\n> E\nx\n$ false\n```\n";
        assert_eq!(
            actions(page),
            [
                run(Manner::Succeeds, "cat <<E\nx\nE\n", Some("x\n")),
                run(Manner::Fails, "false\n", None)
            ]
        );
    }

    #[test]
    fn files_and_skipped_blocks_are_recognised() {
        let page = "- in a list\n  ```yaml file=a.yaml\n  a:\n    b: c\n  ```\n```sh skip=needs a cluster\nkubectl\n```\n```rust\nfn\n```\n";
        let (name, text) = ("a.yaml".to_owned(), "a:\n  b: c\n".to_owned());
        let reason = "needs a cluster".to_owned();
        assert_eq!(
            actions(page),
            [Action::Write { name, text }, Action::Skip { reason }]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        assert_eq!(steps("\n```bash\n").expect_err("open").0, 2);
        let (line, why) = steps("```bash later\n```\n").expect_err("an unknown word");
        assert_eq!(line, 1);
        assert!(why.contains("later"), "{why}");
        assert!(steps("```bash skip=\n```\n").is_err());
    }
}
