//! A member as sync, health and discovery see it: something that answers GET requests. Tests have members of their own.

use bareboat_api::Value;
use bareboat_api::kind::BoxFuture;
use bareboat_server::{OutboundAnswer, OutboundApi, OutboundApiError};
use bytes::{Bytes, BytesMut};
use http::{Method, header};
use std::time::Duration;

/// How much of an error's body is read.
const EXCERPT: usize = 64 << 10;

/// Why a member gave no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MemberError {
    /// The member was not reached, or the connection was lost.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is a failure with this code.
    #[error("{message}")]
    Refused {
        /// The code.
        code: u16,
        /// The message of the member's Status, or the code.
        message: String,
    },
    /// The answer is too large.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// The answer makes no sense.
    #[error("{0}")]
    Garbage(String),
}

impl MemberError {
    /// Returns the code of a refusal.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            MemberError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// A member that answers GET requests.
pub(crate) trait MemberApi: Send + Sync {
    /// Asks for a path with a query, and returns the answer as soon as its head has arrived.
    fn get<'a>(
        &'a self,
        target: &'a str,
        accept: &'a str,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>>;
}

/// An answer whose body is still to be read.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Box<dyn Pieces>,
}

/// A body in pieces.
pub(crate) trait Pieces: Send {
    /// Returns the next piece; `None` at the end. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>>;
}

impl Pieces for OutboundAnswer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, String>>> {
        Box::pin(self.piece())
    }
}

impl MemberApi for OutboundApi {
    fn get<'a>(
        &'a self,
        target: &'a str,
        accept: &'a str,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Answer, MemberError>> {
        Box::pin(async move {
            let headers = [(header::ACCEPT, accept)];
            let sent = self.send(Method::GET, target, &headers, Bytes::new(), patience);
            match sent.await {
                Ok(answer) => Ok(Answer {
                    code: answer.code.as_u16(),
                    body: Box::new(answer),
                }),
                Err(OutboundApiError::Unusable(why)) => Err(MemberError::Garbage(why)),
                Err(error) => Err(MemberError::Unreachable(error.to_string())),
            }
        })
    }
}

/// Reads a whole body up to a limit.
pub(crate) async fn read(body: &mut dyn Pieces, most: usize) -> Result<Bytes, MemberError> {
    let mut whole = BytesMut::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(MemberError::Unreachable)?;
        if whole.len() + piece.len() > most {
            return Err(MemberError::TooLarge(most));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// Returns the failure that an answer with a code other than 200 is.
pub(crate) async fn refused(mut answer: Answer) -> MemberError {
    let page = read(&mut *answer.body, EXCERPT).await.unwrap_or_default();
    refusal(answer.code, &page)
}

fn refusal(code: u16, page: &[u8]) -> MemberError {
    let status = bareboat_wire::json::parse(page).map(|parsed| parsed.value);
    let message = status.ok().and_then(|status| {
        let text = status.get("message")?.as_str()?;
        Some(text.chars().filter(|c| !c.is_control()).take(512).collect())
    });
    MemberError::Refused {
        code,
        message: message.unwrap_or_else(|| format!("the member answered with code {code}")),
    }
}

/// Asks for a whole document, with a time limit for all of it.
pub(crate) async fn fetch_bytes(
    api: &dyn MemberApi,
    target: &str,
    accept: &str,
    most: usize,
    patience: Duration,
) -> Result<Bytes, MemberError> {
    let fetching = async {
        let mut answer = api.get(target, accept, patience).await?;
        match answer.code {
            200 => read(&mut *answer.body, most).await,
            _ => Err(refused(answer).await),
        }
    };
    match tokio::time::timeout(patience, fetching).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let why = format!("no complete answer within {} s", patience.as_secs_f64());
            Err(MemberError::Unreachable(why))
        }
    }
}

/// Asks for a document in JSON.
pub(crate) async fn fetch(
    api: &dyn MemberApi,
    target: &str,
    accept: &str,
    most: usize,
    patience: Duration,
) -> Result<Value, MemberError> {
    let bytes = fetch_bytes(api, target, accept, most, patience).await?;
    let parsing = tokio::task::spawn_blocking(move || bareboat_wire::json::parse(&bytes));
    match parsing.await {
        Ok(Ok(parsed)) => Ok(parsed.value),
        _ => Err(MemberError::Garbage("the answer is not JSON".to_owned())),
    }
}
