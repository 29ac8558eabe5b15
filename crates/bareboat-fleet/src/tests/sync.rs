//! The shelf follows a member through every interleaving of events, crashes, lost connections, compactions and restores.

use super::model::{Model, Speech};
use super::rig::Rig;
use proptest::prelude::*;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_without_a_list() {
    let model = Model::new();
    for name in ["a", "b", "c", "d", "e"] {
        model.put(name, 1);
    }
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!(model.counts(), (1, 1));
    // The connection breaks, and much happens before it is back.
    rig.stop().await;
    model.put("a", 2);
    model.delete("b");
    model.put("f", 1);
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!(model.counts(), (1, 2));
    // The same with a crash of the hub.
    rig.crash().await;
    model.delete("c");
    model.delete("a");
    model.put("a", 3);
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!(model.counts(), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_asked_for_again() {
    let model = Model::new();
    model.put("a", 1);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    let size = rig.bytes();
    // Three objects fit, and a fourth does not.
    let mut settings = rig.settings.clone();
    settings.shelf.bytes_per_member = size * 7 / 2;
    rig.stop().await;
    let mut rig = Rig::with(settings);
    model.put("b", 1);
    model.put("c", 1);
    rig.follow(&model);
    rig.settled(&model).await;
    let (lists, _) = model.counts();
    model.put("d", 1);
    while rig.last_failure().is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failure = rig.last_failure().unwrap_or_default();
    assert!(failure.starts_with("SyncQuotaExceeded"), "{failure}");
    model.delete("a");
    rig.settled(&model).await;
    assert_eq!(model.counts().0, lists, "nothing was listed again");
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_pauses_the_sync_and_reads_go_on() {
    let model = Model::new();
    model.put("a", 1);
    model.put("b", 1);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    let before = rig.rows();
    rig.disk.fill();
    model.put("c", 1);
    model.delete("a");
    while rig.last_failure().is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failure = rig.last_failure().unwrap_or_default();
    assert_eq!(failure, "ShelfFull: the disk of the shelf is full");
    // It stays so for long, and what was written is read all the time.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(rig.rows(), before);
    rig.disk.clear();
    rig.settled(&model).await;
    assert_eq!(model.counts().0, 1, "nothing was listed again");
    // The same while everything is listed.
    rig.stop().await;
    model.put("d", 1);
    model.compact();
    rig.disk.fill();
    rig.reports.lock().clear();
    rig.follow(&model);
    while rig.last_failure().is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rig.disk.clear();
    rig.settled(&model).await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_leads_to_one_list_and_only_differences_are_written() {
    let model = Model::new();
    for name in ["a", "b", "c", "d", "e"] {
        model.put(name, 1);
    }
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    rig.stop().await;
    let before = rig.shelf.visible();
    model.delete("b");
    model.put("c", 2);
    model.compact();
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!(model.counts().0, 2);
    // One deletion and one change: other rows were not written.
    assert_eq!(rig.shelf.visible() - before, 2);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_resumed_from_before_other_options() {
    let model = Model::new();
    model.put("a", 1);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    rig.stop().await;
    // With other options a list begins, and does not end.
    rig.mark = "v1#other".to_owned();
    model.fail(u32::MAX);
    rig.follow(&model);
    while rig.last_failure().is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rig.stop().await;
    // With the former options again, rows of that list must not stay.
    rig.mark = "v1".to_owned();
    model.fail(0);
    let (lists, _) = model.counts();
    rig.follow(&model);
    tokio::time::sleep(Duration::from_secs(600)).await;
    rig.settled(&model).await;
    assert_eq!(model.counts().0, lists + 1);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_was_restored_is_listed_again() {
    let model = Model::new();
    model.put("a", 1);
    let backup = model.backup();
    model.put("b", 1);
    model.put("a", 2);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    rig.stop().await;
    model.restore(&backup);
    rig.follow(&model);
    rig.settled(&model).await;
    model.put("c", 1);
    rig.settled(&model).await;
}

#[tokio::test(start_paused = true)]
async fn the_version_of_bookmarks_is_saved_now_and_then() {
    let model = Model::new();
    model.put("a", 1);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_secs(70)).await;
        model.pass();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Without the saved version this would be too old.
    let passed = model.version();
    rig.crash().await;
    model.compact();
    assert_eq!(model.version(), passed);
    rig.follow(&model);
    rig.settled(&model).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(model.counts().0, 1, "the type was listed again");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_are_written_once_a_minute_or_with_changes() {
    let model = Model::new();
    model.put("a", 1);
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    tokio::time::sleep(Duration::from_secs(61)).await;
    let before = rig.transactions();
    // Almost ten minutes with a bookmark every second.
    for _ in 0..590 {
        model.pass();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let idle = rig.transactions() - before;
    assert!((9..=11).contains(&idle), "{idle}");
    // A change carries the version with it.
    let before = rig.transactions();
    for content in 0..5 {
        model.pass();
        model.put("a", content);
        rig.settled(&model).await;
    }
    assert_eq!(rig.transactions() - before, 5);
    // What was noted is written when the writer ends.
    model.pass();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let passed = model.version();
    rig.stop().await;
    rig.end().await;
    model.compact();
    assert_eq!(model.version(), passed);
    rig.follow(&model);
    rig.settled(&model).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(model.counts().0, 1, "the type was listed again");
}

#[tokio::test(start_paused = true)]
async fn the_present_state_comes_in_the_watch_that_goes_on() {
    let model = Model::speaking(Speech::Streams);
    for name in ["a", "b", "c", "d", "e"] {
        model.put(name, 1);
    }
    let mut rig = Rig::new();
    rig.follow(&model);
    rig.settled(&model).await;
    model.put("a", 2);
    model.delete("b");
    rig.settled(&model).await;
    // Neither a list nor a second watch.
    assert_eq!((model.streams(), model.counts()), (1, (0, 0)));
    // The version of the end was saved, and the watch resumes after a crash.
    rig.crash().await;
    model.delete("c");
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!((model.streams(), model.counts()), (1, (0, 1)));
    // After a compaction the state comes again, and only differences are written.
    rig.stop().await;
    let before = rig.shelf.visible();
    model.delete("d");
    model.put("e", 2);
    model.compact();
    rig.follow(&model);
    rig.settled(&model).await;
    assert_eq!(model.streams(), 2);
    assert_eq!(model.counts().0, 0);
    assert_eq!(rig.shelf.visible() - before, 2);
}

#[tokio::test(start_paused = true)]
async fn members_that_do_not_send_the_present_state_are_listed() {
    for speech in [Speech::Refuses, Speech::Ignores] {
        let model = Model::speaking(speech);
        for name in ["a", "b", "c", "d", "e"] {
            model.put(name, 1);
        }
        let mut rig = Rig::new();
        rig.follow(&model);
        rig.settled(&model).await;
        // A member without the bookmark is silent for a while first.
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((model.streams(), model.counts()), (1, (1, 1)), "{speech:?}");
        // It is not tried again.
        rig.stop().await;
        model.put("f", 1);
        model.compact();
        rig.follow(&model);
        rig.settled(&model).await;
        assert_eq!(model.streams(), 1, "{speech:?}");
        assert_eq!(model.counts().0, 2, "{speech:?}");
    }
}

/// What happens to the member, to the connection or to the hub.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, i64),
    Delete(u8),
    Pass,
    Compact,
    Cut,
    Fail(u32),
    Crash,
    Backup,
    Restore,
    Wait(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0..8u8, 0..100i64).prop_map(|(name, content)| Step::Put(name, content)),
        4 => (0..8u8).prop_map(Step::Delete),
        1 => Just(Step::Pass),
        1 => Just(Step::Compact),
        2 => Just(Step::Cut),
        1 => (1..4u32).prop_map(Step::Fail),
        2 => Just(Step::Crash),
        1 => Just(Step::Backup),
        1 => Just(Step::Restore),
        6 => (0..3000u16).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..40)
}

async fn run(steps: &[Step], speech: Speech) {
    let model = Model::speaking(speech);
    let mut rig = Rig::new();
    // Refills are not rationed here: every restore needs one.
    rig.settings.refill_interval = Duration::from_secs(1);
    let mut backup = model.backup();
    rig.follow(&model);
    for step in steps {
        match step {
            Step::Put(name, content) => model.put(&format!("n{name}"), *content),
            Step::Delete(name) => model.delete(&format!("n{name}")),
            Step::Pass => model.pass(),
            Step::Compact => model.compact(),
            Step::Cut => model.cut(),
            Step::Fail(requests) => model.fail(*requests),
            Step::Backup => backup = model.backup(),
            Step::Crash => {
                rig.crash().await;
                rig.follow(&model);
            }
            Step::Restore => {
                // A member is restored while it is down, so its session begins anew.
                rig.stop().await;
                model.restore(&backup);
                rig.follow(&model);
            }
            Step::Wait(millis) => {
                tokio::time::sleep(Duration::from_millis(u64::from(*millis))).await;
            }
        }
    }
    rig.settled(&model).await;
    rig.stop().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_shelf_ends_as_the_member_is(
        steps in steps(),
        speech in prop_oneof![3 => Just(Speech::Streams), 1 => Just(Speech::Refuses), 1 => Just(Speech::Ignores)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be made");
        runtime.block_on(run(&steps, speech));
    }
}
