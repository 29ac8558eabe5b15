//! Why a call failed, in words for whoever configured it.

use http::{StatusCode, Uri};
use rustls::CertificateError;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;

/// Why a call failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum OutboundError {
    /// Nobody can be called by that address.
    Target(String),
    /// The certificates to trust cannot be used.
    Trust(String),
    /// There was no connection.
    Unreachable {
        /// Who was called.
        uri: Uri,
        /// What went wrong.
        why: String,
    },
    /// There was a connection, but no whole exchange on it.
    Broken {
        /// Who was called.
        uri: Uri,
        /// What went wrong.
        why: String,
    },
    /// There was no whole answer in time.
    Timeout(Uri),
    /// The answer is longer than it may be.
    TooLarge {
        /// Who was called.
        uri: Uri,
        /// How long it may be.
        most: usize,
    },
    /// The answer is no success; a redirect is none.
    Refused {
        /// Who was called.
        uri: Uri,
        /// The code of the answer.
        code: StatusCode,
        /// How its body begins.
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

/// What a code means, in the sentences that clients of Kubernetes know.
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

/// The cause at the bottom; what lies above it only says that there was one.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(words) = certificate(cause) {
            return words;
        }
        // TLS tells at length what an end without a farewell might mean.
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

/// What people know the usual troubles with certificates by.
fn certificate(error: &(dyn Error + 'static)) -> Option<String> {
    let tls = tls_error(error)?;
    let rustls::Error::InvalidCertificate(wrong) = tls else {
        return Some(format!("tls: {tls}"));
    };
    Some(match wrong {
        CertificateError::UnknownIssuer => {
            "x509: certificate signed by unknown authority".to_owned()
        }
        // What a bundle looks like that was left behind when the authority got a new key.
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

/// The TLS error inside an I/O error, however often it was wrapped: sources of I/O errors skip what they wrap.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    while let Some(wrapper) = error.downcast_ref::<std::io::Error>() {
        error = wrapper.get_ref()?;
    }
    error.downcast_ref()
}
