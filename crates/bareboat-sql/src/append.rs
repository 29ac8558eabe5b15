//! Appends over a connection that may be lost at any moment. The code is the same for all databases.

use std::time::{Duration, Instant};

use bareboat_storage::{Appended, BackendError, Batch, Decide, Mark, Tail};

use crate::dialect::{Answer, Dialect, Trouble};
use crate::engine::{PAUSE, closed};
use crate::error::{Failure as _, Meaning, read_failed};
use crate::session::Held;

/// How long an append is repeated while the database refuses writes: another server may become the primary.
const REFUSALS: Duration = Duration::from_secs(5);

pub(crate) fn append<D: Dialect>(
    log: &D,
    base: &Mark,
    batch: &Batch,
) -> Result<Appended, BackendError> {
    append_from(log, base, batch, false)
}

/// Appends `batch` after `base`. `sent` says whether the database may already have received the batch.
fn append_from<D: Dialect>(
    log: &D,
    base: &Mark,
    batch: &Batch,
    mut sent: bool,
) -> Result<Appended, BackendError> {
    let engine = log.engine();
    *engine.writer_id.lock() = batch.writer;
    let end = batch.end(base);
    let begun = Instant::now();
    let deadline = begun + engine.options.patience;
    let done = |end: Mark| {
        *engine.known.lock() = end;
        Ok(Appended::Done(end))
    };
    loop {
        let lost: BackendError = match log.writer().get(log) {
            Err(error) => error,
            Ok(mut held) => {
                let Some(link) = held.as_mut() else {
                    continue;
                };
                let again = std::mem::replace(&mut sent, true);
                let asked = Instant::now();
                match engine.block(log.append(link, base, batch, &end)) {
                    Ok(Answer::Done) => {
                        engine.commits.note(asked.elapsed());
                        return done(end);
                    }
                    Ok(Answer::Found) => match engine.block(log.settle(link, base, batch)) {
                        Ok(Some(end)) => return done(end),
                        // The batch was compacted in the meantime.
                        Ok(None) => continue,
                        Err(error) => {
                            *held = None;
                            read_failed(error)
                        }
                    },
                    Ok(Answer::Moved) => match engine.block(log.read_tail(link, base)) {
                        Ok(tail) => return Ok(Appended::Moved(tail)),
                        Err(trouble) => lost_by::<D>(&mut held, trouble),
                    },
                    Err(error) => match error.meaning() {
                        Meaning::Lost => {
                            *held = None;
                            BackendError::Unreachable(Box::new(error))
                        }
                        Meaning::Again => continue,
                        Meaning::ReadOnly => {
                            sent = again;
                            // Another server may be the primary now. If not, this connection is good for reads.
                            if let Ok(other) = engine.block(log.connect()) {
                                *held = Some(other);
                            }
                            BackendError::ReadOnly(Box::new(error))
                        }
                        // The first attempt may still arrive, or may already be in the log.
                        Meaning::Full | Meaning::Busy if again => {
                            BackendError::Unreachable(Box::new(error))
                        }
                        Meaning::Full => return Err(BackendError::Full(Box::new(error))),
                        Meaning::Busy => return Err(BackendError::Busy(Box::new(error))),
                        Meaning::Exists => {
                            tracing::error!(%error, "the log contains an unexpected batch");
                            let tail = engine.block(log.read_tail(link, base));
                            return tail
                                .map(Appended::Moved)
                                .map_err(|trouble| lost_by::<D>(&mut held, trouble));
                        }
                        Meaning::Failed => return Err(BackendError::Failed(Box::new(error))),
                    },
                }
            }
        };
        let until = match &lost {
            BackendError::ReadOnly(_) if !sent => deadline.min(begun + REFUSALS),
            BackendError::ReadOnly(_) | BackendError::Unreachable(_) => deadline,
            _ => return Err(lost),
        };
        if Instant::now() >= until || engine.is_closed() {
            return Err(match (sent, lost) {
                (true, BackendError::Unreachable(why) | BackendError::ReadOnly(why)) => {
                    BackendError::Unknown(why)
                }
                (_, lost) => lost,
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Converts `trouble` to an error of the backend. Drops the connection if the connection failed.
fn lost_by<D: Dialect>(held: &mut Option<D::Link>, trouble: Trouble<D::Error>) -> BackendError {
    match trouble {
        Trouble::Link(error) => {
            *held = None;
            read_failed(error)
        }
        Trouble::Log(error) => error,
    }
}

pub(crate) fn tail<D: Dialect>(log: &D, after: &Mark) -> Result<Tail, BackendError> {
    let mut again = true;
    loop {
        let mut held = log.writer().get(log)?;
        let Some(link) = held.as_mut() else {
            return Err(closed());
        };
        match log.engine().block(log.read_tail(link, after)) {
            Ok(tail) => return Ok(tail),
            // The server may have been restarted since the connection was last used.
            Err(Trouble::Link(error)) if again && error.meaning() == Meaning::Lost => {
                *held = None;
                again = false;
            }
            Err(trouble) => return Err(lost_by::<D>(&mut held, trouble)),
        }
    }
}

/// Begins a transaction that keeps other writers out, and reads the batches that follow `base`.
fn hold<'a, D: Dialect>(
    log: &'a D,
    base: &Mark,
) -> Result<(Held<'a, D::Link>, Tail), BackendError> {
    let mut held = log.writer().get(log)?;
    let Some(link) = held.as_mut() else {
        return Err(closed());
    };
    let tail = log.engine().block(async {
        log.hold(link).await.map_err(Trouble::Link)?;
        log.read_tail(link, base).await
    });
    match tail {
        Ok(tail) => Ok((held, tail)),
        Err(trouble) => {
            let error = lost_by::<D>(&mut held, trouble);
            // Dropping the connection ends the transaction.
            *held = None;
            Err(error)
        }
    }
}

pub(crate) fn append_held<D: Dialect>(
    log: &D,
    base: &Mark,
    decide: &mut Decide<'_>,
) -> Result<Option<Appended>, BackendError> {
    let engine = log.engine();
    let deadline = Instant::now() + engine.options.patience;
    let (mut held, tail) = loop {
        match hold(log, base) {
            Ok(locked) => break locked,
            Err(BackendError::Unreachable(_))
                if Instant::now() < deadline && !engine.is_closed() =>
            {
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    };
    let Some(link) = held.as_mut() else {
        return Err(closed());
    };
    // This transaction may have begun another epoch, and loading uses another session.
    if tail == Tail::Reload {
        if let Err(error) = engine.block(log.release(link)) {
            return Err(lost_by::<D>(&mut held, Trouble::Link(error)));
        }
        drop(held);
        return match decide(tail) {
            Some((base, batch)) => append(log, &base, &batch).map(Some),
            None => Ok(None),
        };
    }
    let Some((base, batch)) = decide(tail) else {
        let ended = engine.block(log.release(link));
        if ended.is_err() {
            *held = None;
        }
        return Ok(None);
    };
    *engine.writer_id.lock() = batch.writer;
    let end = batch.end(&base);
    match engine.block(log.append_held(link, &base, &batch, &end)) {
        Ok(Answer::Done) => {
            *engine.known.lock() = end;
            Ok(Some(Appended::Done(end)))
        }
        Ok(Answer::Found) => {
            drop(held);
            append_from(log, &base, &batch, true).map(Some)
        }
        Ok(Answer::Moved) => {
            drop(held);
            self::tail(log, &base).map(Appended::Moved).map(Some)
        }
        Err(error) => {
            *held = None;
            drop(held);
            match error.meaning() {
                Meaning::Full => Err(BackendError::Full(Box::new(error))),
                Meaning::ReadOnly => Err(BackendError::ReadOnly(Box::new(error))),
                Meaning::Failed => Err(BackendError::Failed(Box::new(error))),
                // An append without the held lock finds out whether the batch was stored.
                _ => append_from(log, &base, &batch, true).map(Some),
            }
        }
    }
}
