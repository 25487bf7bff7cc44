//! Status codes and their reason phrases (RFC 9110, section 15).
//!
//! Not here: the choice of a status. Invariant: a code always has three digits, since it is written as
//! such.

use std::fmt;

/// A status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(u16);

/// One table for the constants and the reasons, so that the two cannot diverge.
macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal)*) => {
        impl Status {
            $(#[doc = concat!(stringify!($code), " ", $reason)] pub const $name: Self = Self($code);)*

            /// Returns the reason phrase; empty for a code that is not in the table, which RFC 9112,
            /// section 4 allows.
            #[must_use]
            pub fn reason(self) -> &'static str {
                match self.0 {
                    $($code => $reason,)*
                    _ => "",
                }
            }
        }
    };
}

statuses! {
    CONTINUE 100 "Continue"
    SWITCHING_PROTOCOLS 101 "Switching Protocols"
    PROCESSING 102 "Processing"
    OK 200 "OK"
    CREATED 201 "Created"
    ACCEPTED 202 "Accepted"
    NO_CONTENT 204 "No Content"
    RESET_CONTENT 205 "Reset Content"
    PARTIAL_CONTENT 206 "Partial Content"
    MULTI_STATUS 207 "Multi-Status"
    MOVED_PERMANENTLY 301 "Moved Permanently"
    FOUND 302 "Found"
    SEE_OTHER 303 "See Other"
    NOT_MODIFIED 304 "Not Modified"
    TEMPORARY_REDIRECT 307 "Temporary Redirect"
    PERMANENT_REDIRECT 308 "Permanent Redirect"
    BAD_REQUEST 400 "Bad Request"
    UNAUTHORIZED 401 "Unauthorized"
    FORBIDDEN 403 "Forbidden"
    NOT_FOUND 404 "Not Found"
    METHOD_NOT_ALLOWED 405 "Method Not Allowed"
    NOT_ACCEPTABLE 406 "Not Acceptable"
    REQUEST_TIMEOUT 408 "Request Timeout"
    CONFLICT 409 "Conflict"
    GONE 410 "Gone"
    LENGTH_REQUIRED 411 "Length Required"
    PRECONDITION_FAILED 412 "Precondition Failed"
    CONTENT_TOO_LARGE 413 "Content Too Large"
    URI_TOO_LONG 414 "URI Too Long"
    UNSUPPORTED_MEDIA_TYPE 415 "Unsupported Media Type"
    RANGE_NOT_SATISFIABLE 416 "Range Not Satisfiable"
    EXPECTATION_FAILED 417 "Expectation Failed"
    MISDIRECTED_REQUEST 421 "Misdirected Request"
    UNPROCESSABLE_CONTENT 422 "Unprocessable Content"
    LOCKED 423 "Locked"
    FAILED_DEPENDENCY 424 "Failed Dependency"
    UPGRADE_REQUIRED 426 "Upgrade Required"
    PRECONDITION_REQUIRED 428 "Precondition Required"
    TOO_MANY_REQUESTS 429 "Too Many Requests"
    REQUEST_HEADER_FIELDS_TOO_LARGE 431 "Request Header Fields Too Large"
    CHECKSUM_MISMATCH 460 "Checksum Mismatch"
    INTERNAL_SERVER_ERROR 500 "Internal Server Error"
    NOT_IMPLEMENTED 501 "Not Implemented"
    BAD_GATEWAY 502 "Bad Gateway"
    SERVICE_UNAVAILABLE 503 "Service Unavailable"
    GATEWAY_TIMEOUT 504 "Gateway Timeout"
    HTTP_VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported"
    INSUFFICIENT_STORAGE 507 "Insufficient Storage"
    LOOP_DETECTED 508 "Loop Detected"
}

impl Status {
    /// Returns the status of a received code, such as that of an upstream server.
    ///
    /// "Values outside the range 100..599 are invalid" (RFC 9110, section 15).
    #[must_use]
    pub fn from_code(code: u16) -> Option<Self> {
        (100..=599).contains(&code).then_some(Self(code))
    }

    /// Returns the three-digit code.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0
    }

    /// Returns whether further responses to the same request follow.
    #[must_use]
    pub fn is_informational(self) -> bool {
        self.0 < 200
    }

    /// Returns whether a response with this status never has a body.
    ///
    /// "any response with a 1xx (Informational), 204 (No Content), or 304 (Not Modified) status code is
    /// always terminated by the first empty line after the header fields" (RFC 9112, section 6.3).
    #[must_use]
    pub fn is_bodiless(self) -> bool {
        self.is_informational() || matches!(self, Self::NO_CONTENT | Self::NOT_MODIFIED)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.reason())
    }
}
