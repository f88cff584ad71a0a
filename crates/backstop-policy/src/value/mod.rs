//! The single values of the file: each knows what it is called, how it is written and what is wrong with it.

mod amount;
mod authorizer;
mod choice;
mod date;
mod factor;
mod header;
mod host;
mod json;
mod key_part;
mod language;
mod literal;
mod matching;
mod name;
mod net;
mod number;
mod operation;
mod percent;
mod probe_path;
mod rate;
mod redis_url;
mod request_line;
mod status;
mod status_path;
mod text;
mod time;
mod token;
mod web_origin;

pub(crate) use amount::{
    Attempts, Count, DiskSize, HeadSize, PositiveSize, Probes, Size, Threads, size_text,
};
pub(crate) use authorizer::{AuthorizerUrl, PrincipalField, Sign, TellingHeader};
pub(crate) use choice::{
    AccessFormatChoice, AfterRestartChoice, FaultChoice, IncorrectChoice, KeyFormChoice, LedgerChoice,
    MatchChoice, ModeChoice, RetryOwnerChoice, StateChoice, StoreBodyChoice, UnavailableChoice,
    UnknownAnswerChoice, UnsynchronisedChoice, VerdictChoice,
};
pub(crate) use date::Date;
pub(crate) use factor::{Factor, factor_text};
pub(crate) use header::{EditableHeader, HeaderText, SecretText, is_of_content, is_telling};
pub(crate) use host::FixedHost;
pub use host::HostPattern;
pub(crate) use json::{Pointer, is_json, one_json_value};
pub(crate) use key_part::KeyPartText;
pub(crate) use language::Language;
pub(crate) use literal::LiteralValue;
pub use matching::{MatchRule, Method, Segment, Template};
pub(crate) use matching::{PartPath, PathPrefix};
pub(crate) use name::Name;
pub use net::{Address, IpRange};
pub(crate) use net::{Listen, Url};
pub(crate) use operation::{EchoText, OperationKey, ScopeText};
pub(crate) use percent::{Percent, PositivePercent, percent_text};
pub(crate) use probe_path::ProbePath;
pub(crate) use rate::Rate;
pub(crate) use redis_url::RedisUrl;
pub(crate) use request_line::RequestLine;
pub(crate) use status::{DeclaredStatus, GoneStatus, Status};
pub(crate) use status_path::StatusPath;
pub(crate) use text::{MediaType, Text};
pub use time::duration;
pub(crate) use time::{PositiveTime, Time, time_text};
pub(crate) use token::{AlgorithmName, NonEmptyText};
pub(crate) use web_origin::WebOrigin;
