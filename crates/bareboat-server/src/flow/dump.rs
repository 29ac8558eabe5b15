//! Debugging tables in the format of kube-apiserver.

use super::fair::{self, FlowControl};
use super::level::Waiter;
use bareboat_api::time::Timestamp;
use bareboat_flow::WaitingView;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// Maximum number of rows of requests.
const MOST_REQUESTS: usize = 10_000;

impl FlowControl {
    /// Returns one of the debugging tables of priority and fairness (levels, queues or requests) as text in
    /// kube-apiserver's format; `None` if there is none of this name.
    pub(super) fn dump(&self, name: &str, details: bool) -> Option<String> {
        let mut rows = Rows::default();
        match name {
            "dump_priority_levels" => self.dump_levels(&mut rows),
            "dump_queues" => self.dump_queues(&mut rows),
            "dump_requests" => self.dump_requests(&mut rows, details),
            _ => return None,
        }
        Some(rows.print())
    }

    fn dump_levels(&self, rows: &mut Rows) {
        rows.add([
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ]);
        let table = self.shared().table.load();
        for slot in &table.levels {
            let classes = table.classes.iter();
            let classes = classes.filter(|class| class.level.name == slot.spec.name);
            let (mut executing, mut dispatched, mut rejected, mut late) = (0, 0, 0, 0);
            for class in classes {
                let meter = &class.meter;
                executing += meter.executing(false).0 + meter.executing(true).0;
                dispatched += meter.dispatched_total();
                let refused = meter.rejected_total();
                rejected += refused.iter().sum::<u64>();
                late += meter.timed_out();
            }
            let (active, waiting) = slot.level.look(|queues| {
                let active = queues.queues().filter(|queue| queue.waiting > 0).count();
                (active, queues.counts().1)
            });
            rows.add([
                slot.spec.name.to_string(),
                active.to_string(),
                (waiting == 0 && executing == 0).to_string(),
                false.to_string(),
                waiting.to_string(),
                executing.to_string(),
                dispatched.to_string(),
                rejected.to_string(),
                late.to_string(),
                0.to_string(),
            ]);
        }
    }

    fn dump_queues(&self, rows: &mut Rows) {
        rows.add([
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ]);
        for slot in &self.shared().table.load().levels {
            if slot.spec.exempt {
                rows.add([
                    slot.spec.name.as_str(),
                    "<none>",
                    "<none>",
                    "<none>",
                    "<none>",
                    "<none>",
                    "<none>",
                    "<none>",
                    "<none>",
                ]);
                continue;
            }
            let queues: Vec<_> = slot.level.look(|queues| queues.queues().collect());
            for (index, queue) in queues.into_iter().enumerate() {
                rows.add([
                    slot.spec.name.to_string(),
                    index.to_string(),
                    queue.waiting.to_string(),
                    queue.running.to_string(),
                    queue.seats.to_string(),
                    format!("{:.8}ss", queue.next_start as f64 / 1e9),
                    queue.waiting_seats.to_string(),
                    queue.waiting_seats.to_string(),
                    "0.00000000ss".to_owned(),
                ]);
            }
        }
    }

    fn dump_requests(&self, rows: &mut Rows, details: bool) {
        let mut head = vec![
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            "FlowDistingsher",
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
        ];
        if details {
            head.extend([
                "UserName",
                "Verb",
                "APIPath",
                "Namespace",
                "Name",
                "APIVersion",
                "Resource",
                "SubResource",
            ]);
        }
        rows.add(head);
        for slot in &self.shared().table.load().levels {
            let room = MOST_REQUESTS.saturating_sub(rows.0.len());
            let now = slot.level.now();
            slot.level.look(|queues| {
                for waiting in queues.waiting().take(room) {
                    rows.add(request(&slot.spec.name, &waiting, now, details));
                }
            });
        }
    }
}

fn request(level: &str, waiting: &WaitingView<'_, Waiter>, now: u64, details: bool) -> Vec<String> {
    let Waiter {
        class, user, info, ..
    } = waiting.payload;
    let arrived = SystemTime::now() - Duration::from_nanos(now - waiting.arrived);
    let flow = class.schema.distinguisher.of(user, &fair::request(info));
    let mut row = vec![
        level.to_owned(),
        class.schema.name.to_string(),
        waiting.queue.to_string(),
        waiting.place.to_string(),
        flow.to_owned(),
        Timestamp::from(arrived).print_micros(),
        waiting.seats.to_string(),
        "0".to_owned(),
        "0s".to_owned(),
    ];
    if details {
        let version = match info.group.as_str() {
            "" => info.version.to_string(),
            group => format!("{group}/{}", info.version),
        };
        row.extend([
            user.name.to_string(),
            info.verb.to_string(),
            info.path.clone(),
            info.namespace.to_string(),
            info.name.to_string(),
            version,
            info.resource.to_string(),
            info.subresource.to_string(),
        ]);
    }
    row
}

/// A table with aligned columns. A client's text cannot add rows or columns.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn add<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let clean = |cell: T| {
            let cell: String = cell.into();
            match cell.contains(|c: char| c.is_control() || c == ',') {
                true => cell.replace(|c: char| c.is_control() || c == ',', "_"),
                false => cell,
            }
        };
        self.0.push(cells.into_iter().map(clean).collect());
    }

    fn print(&self) -> String {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.0 {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count() + 2);
            }
        }
        let mut out = String::new();
        for row in &self.0 {
            for (place, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match place + 1 == row.len() {
                    true => out.push_str(cell),
                    // A text is never longer than its column, so this cannot fail.
                    false => drop(write!(out, "{:<width$}", format!("{cell},"))),
                }
            }
            out.push('\n');
        }
        out
    }
}
