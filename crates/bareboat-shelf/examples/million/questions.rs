//! What is asked of every engine.

use crate::Result;

/// A question. The number of its round varies what is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// One Pod by cluster, namespace and name.
    Get,
    /// The first 500 Pods of all clusters.
    Page,
    /// Pods with a label that the shelf has learnt.
    IndexedLabel,
    /// Pods with a label that 100 of 100,000 have.
    RareLabel,
    /// The first 500 Pods with a label that a third has.
    FrequentLabel,
    /// Pods of a node, a declared field.
    DeclaredField,
    /// Pods with an image, a field that no index has and that no Pod has.
    Field,
    /// Pods with arguments that no Pod has, while every body contains the text elsewhere: all bodies must be judged.
    FieldInEveryBody,
    /// How many Pods there are.
    CountPods,
    /// How many objects there are of all types.
    CountAll,
    /// How many Pods each cluster has.
    Summary,
    /// How many objects of all types each cluster has.
    SummaryAll,
    /// The Pods of a Deployment of one cluster.
    OwnerInOne,
    /// The Pods of the Deployments of a name in all clusters.
    OwnerInAll,
}

/// The questions, with their targets, and how often they are asked.
pub(crate) const QUESTIONS: &[(&str, &str, usize, Question)] = &[
    ("get by name", "1", 1000, Question::Get),
    ("page of 500 Pods of all members", "5", 50, Question::Page),
    (
        "Pods by a rare label, no index",
        "80",
        5,
        Question::RareLabel,
    ),
    (
        "first 500 Pods by a frequent label, no index",
        "80",
        5,
        Question::FrequentLabel,
    ),
    (
        "Pods by a label, learnt index",
        "5",
        100,
        Question::IndexedLabel,
    ),
    (
        "Pods by a declared field",
        "5",
        100,
        Question::DeclaredField,
    ),
    ("Pods by another field, no index", "500", 5, Question::Field),
    (
        "Pods by another field, no index, with a text that every body contains",
        "500",
        5,
        Question::FieldInEveryBody,
    ),
    ("count of all Pods", "300", 5, Question::CountPods),
    ("count of all objects", "300", 5, Question::CountAll),
    ("Pods by cluster", "300", 5, Question::Summary),
    ("all objects by cluster", "300", 5, Question::SummaryAll),
    (
        "Pods of a Deployment of one member",
        "–",
        50,
        Question::OwnerInOne,
    ),
    (
        "Pods of Deployments of a name, all members",
        "–",
        20,
        Question::OwnerInAll,
    ),
];

/// Something that can be asked.
pub(crate) trait Engine {
    /// Does what a question needs and what is not measured.
    fn prepare(&mut self, question: Question) -> Result<()> {
        let _ = question;
        Ok(())
    }

    /// Answers, and returns how many rows were found; `None` if the engine refuses the question.
    fn ask(&mut self, question: Question, round: usize, members: usize) -> Result<Option<usize>>;
}
