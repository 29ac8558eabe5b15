//! Passes methods of [`Backend`](crate::Backend) on to another backend, for backends that wrap one.

/// Implements methods of [`Backend`](crate::Backend) by calls of the backend in a field:
/// `delegate_backend!(inner: is_shared limits tail);` within the `impl` block.
#[macro_export]
macro_rules! delegate_backend {
    ($field:ident: $($method:ident)*) => {
        $($crate::delegate_backend! { @$method $field })*
    };
    (@is_shared $field:ident) => {
        fn is_shared(&self) -> bool {
            self.$field.is_shared()
        }
    };
    (@limits $field:ident) => {
        fn limits(&self) -> $crate::Limits {
            self.$field.limits()
        }
    };
    (@append $field:ident) => {
        fn append(
            &self,
            base: &$crate::Mark,
            batch: &$crate::Batch,
        ) -> Result<$crate::Appended, $crate::BackendError> {
            self.$field.append(base, batch)
        }
    };
    (@append_held $field:ident) => {
        fn append_held(
            &self,
            base: &$crate::Mark,
            decide: &mut $crate::Decide<'_>,
        ) -> Result<Option<$crate::Appended>, $crate::BackendError> {
            self.$field.append_held(base, decide)
        }
    };
    (@tail $field:ident) => {
        fn tail(&self, after: &$crate::Mark) -> Result<$crate::Tail, $crate::BackendError> {
            self.$field.tail(after)
        }
    };
    (@wait $field:ident) => {
        fn wait(&self, after: u64, until: ::std::time::Instant) -> bool {
            self.$field.wait(after, until)
        }
    };
    (@attend $field:ident) => {
        fn attend(&self, attention: $crate::Attention) {
            self.$field.attend(attention);
        }
    };
    (@load $field:ident) => {
        fn load(
            &self,
            after: u64,
            visit: &mut dyn FnMut($crate::Record),
        ) -> Result<$crate::Mark, $crate::BackendError> {
            self.$field.load(after, visit)
        }
    };
    (@dump $field:ident) => {
        fn dump(
            &self,
            after: u64,
            visit: &mut dyn FnMut($crate::Record),
            stop: &$crate::Stop,
        ) -> Result<$crate::Mark, $crate::BackendError> {
            self.$field.dump(after, visit, stop)
        }
    };
    (@refill $field:ident) => {
        fn refill(&self, step: $crate::Refill<'_>) -> Result<(), $crate::BackendError> {
            self.$field.refill(step)
        }
    };
    (@is_complete $field:ident) => {
        fn is_complete(&self) -> Result<bool, $crate::BackendError> {
            self.$field.is_complete()
        }
    };
    (@next_epoch $field:ident) => {
        fn next_epoch(&self, beyond: u64) -> Result<$crate::Mark, $crate::BackendError> {
            self.$field.next_epoch(beyond)
        }
    };
    (@read_since $field:ident) => {
        fn read_since(
            &self,
            resource: Option<&str>,
            after: u64,
            upto: u64,
            limit: $crate::PageLimit,
            stop: &$crate::Stop,
        ) -> Result<$crate::ChangePage, $crate::BackendError> {
            self.$field.read_since(resource, after, upto, limit, stop)
        }
    };
    (@read_at $field:ident) => {
        fn read_at(
            &self,
            resource: &str,
            revision: u64,
            visit: &mut dyn FnMut($crate::Record),
            stop: &$crate::Stop,
        ) -> Result<(), $crate::BackendError> {
            self.$field.read_at(resource, revision, visit, stop)
        }
    };
    (@compact $field:ident) => {
        fn compact(&self, upto: u64, rows: usize) -> Result<$crate::Sweep, $crate::BackendError> {
            self.$field.compact(upto, rows)
        }
    };
    (@history $field:ident) => {
        fn history(
            &self,
            visit: &mut dyn FnMut($crate::Written),
        ) -> Result<(), $crate::BackendError> {
            self.$field.history(visit)
        }
    };
    (@places $field:ident) => {
        fn places(&self, visit: &mut dyn FnMut($crate::Mark)) -> Result<(), $crate::BackendError> {
            self.$field.places(visit)
        }
    };
    (@settings $field:ident) => {
        fn settings(&self) -> Result<Vec<$crate::examine::Setting>, $crate::BackendError> {
            self.$field.settings()
        }
    };
    (@revision_before $field:ident) => {
        fn revision_before(
            &self,
            time: ::std::time::SystemTime,
        ) -> Result<u64, $crate::BackendError> {
            self.$field.revision_before(time)
        }
    };
    (@compacted $field:ident) => {
        fn compacted(&self) -> u64 {
            self.$field.compacted()
        }
    };
    (@mark $field:ident) => {
        fn mark(&self) -> Result<$crate::Mark, $crate::BackendError> {
            self.$field.mark()
        }
    };
    (@rewrite $field:ident) => {
        fn rewrite(
            &self,
            change: &mut $crate::ChangeValue<'_>,
        ) -> Result<$crate::Rewritten, $crate::BackendError> {
            self.$field.rewrite(change)
        }
    };
    (@release_space $field:ident) => {
        fn release_space(&self) -> Result<bool, $crate::BackendError> {
            self.$field.release_space()
        }
    };
    (@release_memory $field:ident) => {
        fn release_memory(&self) {
            self.$field.release_memory();
        }
    };
    (@stats $field:ident) => {
        fn stats(&self) -> $crate::BackendStats {
            self.$field.stats()
        }
    };
    (@close $field:ident) => {
        fn close(&self) -> Result<(), $crate::BackendError> {
            self.$field.close()
        }
    };
}
