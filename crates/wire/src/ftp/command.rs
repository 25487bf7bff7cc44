//! Commands: a verb and what follows it.
//!
//! Not here: what the argument means, which each verb has a parser for. "The command codes themselves are
//! alphabetic characters terminated by the character `<SP>` (Space) if parameters follow" (RFC 959, section
//! 4.1). What must hold: every byte after that one space is the argument's, since a name may begin and end
//! with spaces; case makes no difference to a verb.

// A verb, its name and its place in the list of all are told once.
macro_rules! verbs {
    ($($(#[$doc:meta])+ $variant:ident $name:literal,)+) => {
        /// What a client asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Verb {
            $($(#[$doc])+ $variant,)+
        }

        impl Verb {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// As it is written on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

verbs! {
    /// Who logs in.
    User "USER",
    /// The password.
    Pass "PASS",
    /// An account beside the name, which nobody has here.
    Acct "ACCT",
    /// Change the working folder.
    Cwd "CWD",
    /// To the folder above.
    Cdup "CDUP",
    /// The end of the session.
    Quit "QUIT",
    /// Log out, and stay connected.
    Rein "REIN",
    /// Mount another structure.
    Smnt "SMNT",
    /// Connect to this address for the next transfer.
    Port "PORT",
    /// Listen for the next transfer's connection.
    Pasv "PASV",
    /// PORT for any protocol (RFC 2428).
    Eprt "EPRT",
    /// PASV for any protocol (RFC 2428).
    Epsv "EPSV",
    /// ASCII or image.
    Type "TYPE",
    /// The file structure.
    Stru "STRU",
    /// The transfer mode.
    Mode "MODE",
    /// Download.
    Retr "RETR",
    /// Upload.
    Stor "STOR",
    /// Upload to a name that the server chooses.
    Stou "STOU",
    /// Upload to a file's end.
    Appe "APPE",
    /// Room for an upload.
    Allo "ALLO",
    /// Where the next transfer begins.
    Rest "REST",
    /// What is to be renamed.
    Rnfr "RNFR",
    /// The name that it gets.
    Rnto "RNTO",
    /// End the transfer under way.
    Abor "ABOR",
    /// Delete a file.
    Dele "DELE",
    /// Remove a folder.
    Rmd "RMD",
    /// Make a folder.
    Mkd "MKD",
    /// The working folder.
    Pwd "PWD",
    /// A listing for people.
    List "LIST",
    /// The names alone.
    Nlst "NLST",
    /// The facts of one file or folder (RFC 3659).
    Mlst "MLST",
    /// A listing for programs (RFC 3659).
    Mlsd "MLSD",
    /// A file's length (RFC 3659).
    Size "SIZE",
    /// When a file was changed (RFC 3659).
    Mdtm "MDTM",
    /// Say when a file was changed (draft-somers-ftp-mfxx).
    Mfmt "MFMT",
    /// A file's digest (draft-bryan-ftpext-hash).
    Hash "HASH",
    /// What only this server has.
    Site "SITE",
    /// The operating system.
    Syst "SYST",
    /// How things stand, or a listing on the control connection.
    Stat "STAT",
    /// What may be asked.
    Help "HELP",
    /// Nothing.
    Noop "NOOP",
    /// What has been added to RFC 959 here (RFC 2389).
    Feat "FEAT",
    /// Settings of what FEAT lists (RFC 2389).
    Opts "OPTS",
    /// Begin TLS (RFC 4217).
    Auth "AUTH",
    /// The size of protected blocks (RFC 4217).
    Pbsz "PBSZ",
    /// Whether data connections are protected (RFC 4217).
    Prot "PROT",
    /// The name of the client's program.
    Clnt "CLNT",
}

/// The names that verbs had while they were experiments, which clients still send (RFC 1123, section
/// 4.1.3.1).
const ALIASES: [(&str, Verb); 5] = [
    ("XCUP", Verb::Cdup),
    ("XCWD", Verb::Cwd),
    ("XMKD", Verb::Mkd),
    ("XPWD", Verb::Pwd),
    ("XRMD", Verb::Rmd),
];

/// The first word of the line is no verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown command. HELP lists the known ones.")]
pub struct Unknown;

/// One line of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// What is asked for.
    pub verb: Verb,
    /// What follows the one space after the verb; empty if there is none.
    pub argument: &'a [u8],
}

/// Takes a line apart.
///
/// # Errors
///
/// [`Unknown`] where the first word is no verb.
pub fn parse(line: &[u8]) -> Result<Command<'_>, Unknown> {
    let end = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let (word, rest) = line.split_at(end);
    let verb = verb(word).ok_or(Unknown)?;
    Ok(Command { verb, argument: rest.get(1..).unwrap_or_default() })
}

/// "Upper and lower case alphabetic characters are to be treated identically" (RFC 959, section 5.3).
fn verb(word: &[u8]) -> Option<Verb> {
    let own = Verb::ALL.iter().map(|verb| (verb.name(), *verb));
    let mut all = own.chain(ALIASES);
    all.find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, verb)| verb)
}
