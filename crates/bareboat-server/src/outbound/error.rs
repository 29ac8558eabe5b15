//! Errors of outbound calls, with messages for the person who configured the destination.

use http::{StatusCode, Uri};
use rustls::CertificateError;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a call to another server failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum OutboundError {
    /// The address is invalid; holds the reason.
    Target(String),
    /// The CA bundle is invalid; holds the reason.
    Trust(String),
    /// No connection could be made.
    Unreachable {
        /// The URL that was called.
        uri: Uri,
        /// The message of the innermost error.
        why: String,
    },
    /// The connection failed before the exchange was complete.
    Broken {
        /// The URL that was called.
        uri: Uri,
        /// The message of the innermost error.
        why: String,
    },
    /// The answer was not complete in time.
    Timeout(Uri),
    /// The answer is too long.
    TooLarge {
        /// The URL that was called.
        uri: Uri,
        /// The maximum length in bytes.
        most: usize,
    },
    /// The answer's code is not a success; redirects count as failures.
    Refused {
        /// The URL that was called.
        uri: Uri,
        /// The code of the answer.
        code: StatusCode,
        /// The start of its body.
        page: String,
    },
}

impl OutboundError {
    pub(super) fn unreachable(uri: &Uri, error: &(dyn Error + 'static)) -> OutboundError {
        OutboundError::Unreachable {
            uri: uri.clone(),
            why: innermost(error),
        }
    }

    pub(super) fn broken(uri: &Uri, error: &(dyn Error + 'static)) -> OutboundError {
        OutboundError::Broken {
            uri: uri.clone(),
            why: innermost(error),
        }
    }
}

impl OutboundError {
    /// Returns the message without the body of the answer, for logs.
    pub(crate) fn without_page(&self) -> String {
        match self {
            OutboundError::Refused { uri, code, .. } => format!("{uri} answered with {code}"),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutboundError::Target(why) => f.write_str(why),
            OutboundError::Trust(why) => write!(f, "the CA bundle cannot be used: {why}"),
            OutboundError::Unreachable { uri, why } | OutboundError::Broken { uri, why } => {
                write!(f, "Post \"{uri}\": {why}")
            }
            OutboundError::Timeout(uri) => write!(f, "Post \"{uri}\": context deadline exceeded"),
            OutboundError::TooLarge { uri, most } => {
                write!(f, "Post \"{uri}\": the answer has more than {most} bytes")
            }
            OutboundError::Refused { uri, code, page } => {
                write!(f, "{} (Post \"{uri}\": {code}", sentence(*code))?;
                if !page.is_empty() {
                    write!(f, ": {page}")?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Error for OutboundError {}

/// Returns the meaning of a code, in the messages that Kubernetes clients know.
fn sentence(code: StatusCode) -> Cow<'static, str> {
    Cow::Borrowed(match code.as_u16() {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => "an error on the server has prevented the request from succeeding",
        code => {
            return Cow::Owned(format!(
                "the server responded with the status code {code} but did not return more information"
            ));
        }
    })
}

/// Returns the innermost cause; the outer errors add no information.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(words) = certificate(cause) {
            return words;
        }
        // rustls explains at length what a missing close_notify might mean.
        if let Some(io) = cause.downcast_ref::<std::io::Error>()
            && io.kind() == std::io::ErrorKind::UnexpectedEof
        {
            return "unexpected EOF".to_owned();
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => return cause.to_string(),
        }
    }
}

/// Returns the well-known messages for common certificate errors.
fn certificate(error: &(dyn Error + 'static)) -> Option<String> {
    let tls = tls_error(error)?;
    let rustls::Error::InvalidCertificate(wrong) = tls else {
        return Some(format!("tls: {tls}"));
    };
    Some(match wrong {
        CertificateError::UnknownIssuer => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        // Caused by an old bundle after the authority got a new key.
        CertificateError::BadSignature => {
            "x509: certificate signed by unknown authority (the bundle has another key of that name)"
                .to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            format!("x509: certificate has expired or is not yet valid: {wrong}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("x509: {wrong}")
        }
        _ => format!("x509: {tls}"),
    })
}

/// Finds the TLS error inside an I/O error, however often it was wrapped: `source` of an I/O error skips the error it
/// wraps.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    while let Some(wrapper) = error.downcast_ref::<std::io::Error>() {
        error = wrapper.get_ref()?;
    }
    error.downcast_ref()
}
