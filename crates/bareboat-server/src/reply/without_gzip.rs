//! No compression, without the feature `gzip`: answers are sent as they are.

use super::Response;
use crate::work::Threads;
use http::HeaderMap;

/// Returns the answer.
pub(crate) fn compress_if_wanted(
    _request: &HeaderMap,
    response: Response,
    _threads: &Threads,
) -> Response {
    response
}
