//! Every diagnostic that exists: its stable code, how grave it is and what it is called.
//!
//! A code never changes its meaning and is never used again. The first digit group tells the stage: `00` the text,
//! `01` keys and tables, `02` single values, `03` values that do not fit together, `05` lints, `06` notes,
//! `07` waivers. Each has a page in `docs/diagnostics`.

/// How grave a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing to change.
    Note,
    /// Accepted, but probably not what is wanted. May be waived with a reason.
    Warning,
    /// The whole file is refused.
    Error,
}

impl Severity {
    /// `error`, `warning` or `note`.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

macro_rules! codes {
    ($($name:ident = $text:literal, $severity:ident, $title:literal;)*) => {
        /// A stable diagnostic code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as it is printed, such as `BS0101`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }

            /// How grave it is.
            pub const fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity,)* }
            }

            /// What it is called, in a few words.
            pub const fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Its page, from the root of the repository.
            pub const fn docs(self) -> &'static str {
                match self { $(Code::$name => concat!("docs/diagnostics/", $text, ".md"),)* }
            }
        }
    };
}

codes! {
    Unreadable = "BS0001", Error, "the policy file cannot be read";
    Syntax = "BS0002", Error, "the text is not TOML";
    DuplicateKey = "BS0003", Error, "a key is written twice";

    UnknownKey = "BS0101", Error, "unknown key";
    MissingKey = "BS0102", Error, "a required key is missing";
    MissingContract = "BS0103", Error, "a limit that has no default is missing";
    WrongType = "BS0104", Error, "a value has the wrong type";
    UnknownChoice = "BS0105", Error, "a value is not one of those allowed";
    NotAvailable = "BS0106", Error, "not available in this version";
    OtherClass = "BS0107", Error, "a key belongs to another route class";
    InvalidName = "BS0108", Error, "invalid name";
    RouteClass = "BS0109", Error, "a route needs exactly one class";
    ExactlyOne = "BS0110", Error, "exactly one of several keys must be given";
    AtLeastOne = "BS0111", Error, "at least one of several keys must be given";

    Duration = "BS0201", Error, "invalid duration";
    Size = "BS0202", Error, "invalid size";
    Zero = "BS0203", Error, "a value must be greater than zero";
    OutOfRange = "BS0204", Error, "a number is out of range";
    Address = "BS0205", Error, "invalid address to listen on";
    Url = "BS0206", Error, "invalid URL of a dependency";
    Status = "BS0207", Error, "invalid HTTP status";
    NeverFailure = "BS0208", Error, "a status that is never a failure";
    Header = "BS0209", Error, "invalid header name or value";
    ReservedHeader = "BS0210", Error, "a header that is not the policy's to change";
    Language = "BS0211", Error, "invalid language tag";
    KeyPart = "BS0212", Error, "invalid key part";
    Pointer = "BS0213", Error, "invalid JSON Pointer";
    MediaType = "BS0214", Error, "invalid media type";
    Match = "BS0215", Error, "invalid match";
    Host = "BS0216", Error, "invalid host";
    IpRange = "BS0217", Error, "invalid IP range";
    Repeated = "BS0218", Error, "a list holds the same entry twice";
    Empty = "BS0219", Error, "empty value";
    PreparedFile = "BS0220", Error, "a prepared answer cannot be used";
    EvidenceFile = "BS0221", Error, "an evidence file cannot be read";
    Rate = "BS0222", Error, "invalid rate";
    Percent = "BS0223", Error, "invalid percentage";
    Factor = "BS0224", Error, "invalid factor";
    Date = "BS0225", Error, "invalid date";
    ProbePath = "BS0226", Error, "invalid path to probe";
    Sign = "BS0227", Error, "a field that is no explicit yes";
    Secret = "BS0228", Error, "a secret that cannot be read";
    WebOrigin = "BS0229", Error, "invalid origin of pages";
    NeverGone = "BS0230", Error, "a status that never withdraws a copy";
    Algorithm = "BS0231", Error, "an algorithm that proves nothing about the issuer";
    CacheUrl = "BS0240", Error, "invalid URL of a cache";
    OperationKey = "BS0260", Error, "invalid source of an operation's key";
    Scope = "BS0261", Error, "invalid scope of operations";
    NoIdentity = "BS0262", Error, "a scope that tells no caller apart";
    StatusPath = "BS0263", Error, "invalid path of a status query";
    NoOperation = "BS0264", Error, "a status query that names no operation";
    IdOfAnswer = "BS0265", Error, "a status query by what the lost answer would have told";
    Echo = "BS0266", Error, "invalid source of what an answer repeats";

    UnknownReference = "BS0301", Error, "a name that is not defined";
    SameMatch = "BS0302", Error, "two routes match the same requests";
    KeyParameter = "BS0303", Error, "a key part that the path does not have";
    NoLanguages = "BS0304", Error, "`language` without `languages`";
    LanguageNotInKey = "BS0305", Error, "copies of different languages share a key";
    PhaseTooLong = "BS0306", Error, "a phase is longer than the deadline";
    DrainTooShort = "BS0307", Error, "a deadline is longer than the drain";
    CookieForwarded = "BS0308", Error, "a Cookie is ignored but forwarded";
    NoCopies = "BS0309", Error, "a withdrawn route keeps no copies";
    WritesWithAlternative = "BS0310", Error, "an alternative for a write";
    NoRoom = "BS0311", Error, "copies or held answers have no room";
    SameAddress = "BS0312", Error, "an address is used twice";
    StripPrefix = "BS0313", Error, "a prefix that the path does not have";
    OmitStatus = "BS0314", Error, "a left-out part that is not an answer";
    EditConflict = "BS0315", Error, "a header is both set and removed";
    RecoveryWithoutBreaker = "BS0316", Error, "`recovery` without a `breaker`";
    OpenMaxTooShort = "BS0317", Error, "a breaker's longest pause is shorter than its first";
    ProbesNeverGo = "BS0318", Error, "a breaker that can never close";
    StepDirection = "BS0319", Error, "a recovery step in the wrong direction";
    BandOrder = "BS0320", Error, "a green band above its red band";
    TwoRetryLayers = "BS0321", Error, "two layers retry the same requests";
    NoTimeToRetry = "BS0322", Error, "queue, connection and backoff leave no time for a second attempt";
    SameDependency = "BS0323", Error, "an alternative that is the dependency itself";
    ProbesOverlap = "BS0324", Error, "a probe that outlasts its interval";
    OwnAddress = "BS0330", Error, "a dependency that is the gateway itself";
    NotJson = "BS0331", Error, "a rule for JSON where the answer is none";
    PartPlaces = "BS0340", Error, "parts that cannot stand side by side";
    PartClass = "BS0341", Error, "a route that cannot be a part";
    PartParameter = "BS0342", Error, "a part's parameter that the path does not have";
    PartNotMatched = "BS0343", Error, "a part that its route does not answer";
    TooManyParts = "BS0344", Error, "too many parts";
    PreparedLanguages = "BS0345", Error, "a prepared answer in a language that is never negotiated";
    CacheTimeout = "BS0350", Error, "a cache that is waited for too long";
    OneCache = "BS0351", Error, "one cache with two settings";
    NeedsLocalCopy = "BS0352", Error, "a rule for a local copy that is not kept";
    EffectOnRead = "BS0370", Error, "an effect route that matches a read";
    ScopeNotVerified = "BS0371", Error, "a scope that nobody verifies";
    SharedBodies = "BS0372", Error, "answers are stored where all callers share operations";
    CardData = "BS0373", Error, "answers with card data are stored";
    NoProof = "BS0374", Error, "an answer that does not prove what it is taken for";
    TwoMeanings = "BS0375", Error, "one answer with two meanings";
    NeedsStatusQuery = "BS0376", Error, "a rule for status queries that are never sent";
    NobodyFollows = "BS0377", Error, "202 for operations that nobody follows";
    AbsenceNotWhole = "BS0378", Error, "`not_executed` without the whole rule of absence";
    VerifyTooLong = "BS0379", Error, "an operation is followed for longer than its upstream knows it";
    ForgottenTooSoon = "BS0380", Error, "an operation is forgotten too soon";
    VerifyTimes = "BS0381", Error, "times of verification that do not fit together";
    EffectRepeated = "BS0382", Error, "an effect that another layer repeats";
    LedgerOfOne = "BS0383", Error, "several gateways, each with a ledger of its own";
    EffectBody = "BS0384", Error, "a request body too large to be held whole";
    EffectHeader = "BS0385", Error, "one header with two purposes";
    NoScope = "BS0386", Error, "nothing tells callers apart";

    DenyStatus = "BS0360", Error, "a status that is no explicit no";
    AllowStatus = "BS0361", Error, "a status that is no explicit yes";
    SameName = "BS0362", Error, "an authorizer named as a dependency";
    NoPrincipal = "BS0363", Error, "a key with a principal that nobody names";
    CopiesOfEverybody = "BS0364", Error, "copies behind an authorizer that everybody would share";
    AuthorizerTimeout = "BS0365", Error, "an authorizer that is waited for as long as the request";
    AuthorizerPaths = "BS0366", Error, "an authorizer with two paths";
    SharedWithoutAuthorizer = "BS0367", Error, "`shared` without an authorizer";
    CredentialsForAll = "BS0368", Error, "credentials for pages of every origin";
    ToldByClients = "BS0369", Error, "a field that clients and an authorizer tell";
    OtherKind = "BS0390", Error, "a key of an authorizer of the other kind";
    KeysTooOld = "BS0391", Error, "keys that are too old before they are fetched again";
    NotObserved = "BS0392", Error, "a route that cannot be observed only";
    PartObserved = "BS0393", Error, "a part that is observed only";

    NoCorrect = "BS0501", Warning, "a public read without a rule for what is correct";
    RouteAboveProcess = "BS0502", Warning, "a route's limit is above the process's";
    OptionalShare = "BS0503", Warning, "optional routes may take most of the process";
    FewConnections = "BS0504", Warning, "a route's limit is above its dependency's connections";
    OptionalNeighbour = "BS0505", Warning, "an optional route may take most connections";
    OneConnection = "BS0506", Warning, "a single connection";
    LongDeadline = "BS0507", Warning, "a deadline longer than clients wait";
    OverrideOrigin = "BS0508", Warning, "the origin's wish is overridden";
    TrustClock = "BS0509", Warning, "an unsynchronised clock is trusted";
    AdminExposed = "BS0510", Warning, "the admin address is not on loopback";
    TemporaryStore = "BS0511", Warning, "copies are kept in a temporary folder";
    KeyNotStated = "BS0512", Warning, "a public read does not state its key";
    TrustsEveryone = "BS0513", Warning, "every client's X-Forwarded fields are believed";
    UnusedDependency = "BS0514", Warning, "a dependency that no route uses";
    RedundantDeclared = "BS0515", Warning, "a declared status that is a failure anyway";
    UnusedLedger = "BS0516", Warning, "a ledger that no route uses";
    WithdrawsOnRead = "BS0517", Warning, "`withdraws` on a route that never writes";
    IncorrectWithoutRule = "BS0518", Warning, "`incorrect` without a rule that could fail";
    KeyHeaderRemoved = "BS0519", Warning, "a key header that is removed before forwarding";
    LongMaxAge = "BS0520", Warning, "copies are served for more than a day";
    NoEvidence = "BS0521", Warning, "an alternative without evidence";
    EvidenceNotValid = "BS0522", Warning, "evidence that is not valid today";
    EvidenceOfAnother = "BS0523", Warning, "evidence of another dependency";
    UnusedResource = "BS0524", Warning, "a resource that nothing uses";
    UnreachableMinimum = "BS0525", Warning, "a breaker's minimum that hanging calls cannot reach";
    SlowNeverSeen = "BS0526", Warning, "a breaker that cannot see slow calls";
    SlowOfRouteNotSeen = "BS0527", Warning, "a route whose calls are never slow";
    ProbesAboveConnections = "BS0528", Warning, "more probes than connections";
    ShortForTwo = "BS0529", Warning, "a deadline too short for two attempts";
    SharedResource = "BS0530", Warning, "an alternative on the same resource";
    AboveVerified = "BS0531", Warning, "a limit above what was verified";
    ProbeWithoutBreaker = "BS0532", Warning, "a probe that no breaker uses";
    SlowByTheShortest = "BS0533", Warning, "a breaker that calls slow what a route may take";
    LocalCopyTooYoung = "BS0540", Warning, "a local copy no older than what the cache gives";
    FillAbove = "BS0541", Warning, "a fill budget above what its dependency bears";
    FillTooShort = "BS0542", Warning, "a fill that ends before those who wait for it";
    UnusedAuthorizer = "BS0550", Warning, "an authorizer that no route names";
    AuthorizerBehindRoute = "BS0551", Warning, "an authorizer that bears fewer requests than its routes admit";
    UnusedInstances = "BS0545", Warning, "several gateways and nothing to divide among them";
    SharedScope = "BS0560", Warning, "all callers share operations";
    SharedAccount = "BS0561", Warning, "tenants that may share an account upstream";
    AlwaysAccepted = "BS0562", Warning, "202 for clients that did not ask for it";
    BareAbsence = "BS0563", Warning, "an absence that a status alone shows";
    NobodyAsks = "BS0564", Warning, "an unknown outcome that nothing finds out";
    EffectNeighbour = "BS0565", Warning, "a dependency with effects to which others turn";

    Unmeasured = "BS0601", Note, "limits that no drill has measured";
    SameTargetOnly = "BS0602", Note, "a write withdraws copies of its own path only";
    SeparateLane = "BS0603", Note, "copies are served beyond the route's limit";
    ConnectionsAboveResource = "BS0604", Note, "more connections than their resource bears";
    NoLocalCopy = "BS0605", Note, "a cached read without a local copy";
    Observed = "BS0606", Note, "what is decided is not carried out";
    NotShown = "BS0610", Note, "more findings than are shown";

    UnknownWaiver = "BS0701", Error, "a waiver of something that cannot be waived";
    WaiverReason = "BS0702", Error, "a waiver without a reason";
    UnusedWaiver = "BS0703", Warning, "a waiver that waives nothing";
}

impl Code {
    /// The code written as `text`, if there is one.
    pub fn find(text: &str) -> Option<Code> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }

    /// Whether a waiver may silence it: warnings and notes, except those about waivers and about what is not shown.
    pub fn may_be_waived(self) -> bool {
        self.severity() != Severity::Error && !matches!(self, Code::UnusedWaiver | Code::NotShown)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
