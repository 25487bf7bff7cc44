//! Commands: a verb and its argument.
//!
//! Not here: the argument's syntax, for which each verb has a parser. "The command codes themselves are
//! alphabetic characters terminated by the character `<SP>` (Space) if parameters follow" (RFC 959, section
//! 4.1). Invariants: every byte after that one space belongs to the argument, since a name may begin and
//! end with spaces; verbs are not case-sensitive.

// Defines each verb once: its variant, its name and its entry in `Verb::ALL`.
macro_rules! verbs {
    ($($(#[$doc:meta])+ $variant:ident $name:literal,)+) => {
        /// The verb of a command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Verb {
            $($(#[$doc])+ $variant,)+
        }

        impl Verb {
            /// All verbs.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the verb's name on the wire.
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
    /// Names the account that logs in.
    User "USER",
    /// Sends the password.
    Pass "PASS",
    /// Names an accounting unit beside the user, which this server does not have.
    Acct "ACCT",
    /// Changes the working folder.
    Cwd "CWD",
    /// Changes to the parent folder.
    Cdup "CDUP",
    /// Ends the control connection.
    Quit "QUIT",
    /// Logs out, and keeps the connection.
    Rein "REIN",
    /// Mounts another file system structure.
    Smnt "SMNT",
    /// Has the server connect to this address for the next transfer.
    Port "PORT",
    /// Has the server listen for the next transfer's connection.
    Pasv "PASV",
    /// PORT for any protocol (RFC 2428).
    Eprt "EPRT",
    /// PASV for any protocol (RFC 2428).
    Epsv "EPSV",
    /// Selects ASCII or image.
    Type "TYPE",
    /// Selects the file structure.
    Stru "STRU",
    /// Selects the transfer mode.
    Mode "MODE",
    /// Downloads a file.
    Retr "RETR",
    /// Uploads a file.
    Stor "STOR",
    /// Uploads to a name that the server chooses.
    Stou "STOU",
    /// Appends to a file.
    Appe "APPE",
    /// Reserves space for an upload.
    Allo "ALLO",
    /// Sets the offset at which the next transfer begins.
    Rest "REST",
    /// Names the file to rename.
    Rnfr "RNFR",
    /// Names the file's new name.
    Rnto "RNTO",
    /// Aborts the transfer in progress.
    Abor "ABOR",
    /// Deletes a file.
    Dele "DELE",
    /// Removes a folder.
    Rmd "RMD",
    /// Creates a folder.
    Mkd "MKD",
    /// Reports the working folder.
    Pwd "PWD",
    /// Lists a folder for people, in the form of `ls -l`.
    List "LIST",
    /// Lists the names alone.
    Nlst "NLST",
    /// Reports the facts of one file or folder (RFC 3659).
    Mlst "MLST",
    /// Lists a folder for programs (RFC 3659).
    Mlsd "MLSD",
    /// Reports a file's length (RFC 3659).
    Size "SIZE",
    /// Reports a file's modification time (RFC 3659).
    Mdtm "MDTM",
    /// Sets a file's modification time (draft-somers-ftp-mfxx).
    Mfmt "MFMT",
    /// Reports a file's digest (draft-bryan-ftpext-hash).
    Hash "HASH",
    /// Selects a command that is specific to this server.
    Site "SITE",
    /// Reports the operating system.
    Syst "SYST",
    /// Reports the server's status, or a listing on the control connection.
    Stat "STAT",
    /// Lists the commands.
    Help "HELP",
    /// Does nothing.
    Noop "NOOP",
    /// Lists the extensions of RFC 959 (RFC 2389).
    Feat "FEAT",
    /// Sets options of a command that FEAT lists (RFC 2389).
    Opts "OPTS",
    /// Starts TLS (RFC 4217).
    Auth "AUTH",
    /// Sets the size of protected blocks (RFC 4217).
    Pbsz "PBSZ",
    /// Selects whether data connections are protected (RFC 4217).
    Prot "PROT",
    /// Ends the encryption of the control connection (RFC 4217).
    Ccc "CCC",
    /// Names the client's program.
    Clnt "CLNT",
}

/// Names of verbs from their experimental period, which clients still send (RFC 1123, section 4.1.3.1).
const ALIASES: [(&str, Verb); 5] = [
    ("XCUP", Verb::Cdup),
    ("XCWD", Verb::Cwd),
    ("XMKD", Verb::Mkd),
    ("XPWD", Verb::Pwd),
    ("XRMD", Verb::Rmd),
];

/// The first word of the line is not a known verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown command. HELP lists the known ones.")]
pub struct Unknown;

/// A parsed command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The verb.
    pub verb: Verb,
    /// The bytes after the one space that follows the verb; empty if there is no space.
    pub argument: &'a [u8],
}

/// Parses a line.
///
/// # Errors
///
/// [`Unknown`] if the first word is not a verb.
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
