//! The client commands: one file for each command, whose doc comments are its help.
//!
//! Transfers are not here ([`crate::person`] has them). Invariants: every command that prints can print
//! JSON. The help of every command has examples.

mod at;
mod cp;
mod get;
mod login;
mod logout;
mod ls;
mod mkdir;
mod mv;
mod passwd;
mod put;
mod rm;
mod share;
mod shared;
mod shares;
mod signup;
mod unshare;
mod uploads;
mod whoami;

use clap::Subcommand;

/// The client commands.
#[derive(Subcommand)]
pub(crate) enum Person {
    Signup(signup::Signup),
    Login(login::Login),
    Logout(logout::Logout),
    Whoami(whoami::Whoami),
    Passwd(passwd::Passwd),
    Ls(ls::Ls),
    Put(put::Put),
    Get(get::Get),
    Rm(rm::Rm),
    Mkdir(mkdir::Mkdir),
    Mv(mv::Mv),
    Cp(cp::Cp),
    Share(share::Share),
    Unshare(unshare::Unshare),
    Shares(shares::Shares),
    Shared(shared::Shared),
    Uploads(uploads::Uploads),
}

impl Person {
    /// Runs the command.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Person::Signup(signup) => signup.run(),
            Person::Login(login) => login.run(),
            Person::Logout(logout) => logout.run(),
            Person::Whoami(whoami) => whoami.run(),
            Person::Passwd(passwd) => passwd.run(),
            Person::Ls(ls) => ls.run(),
            Person::Put(put) => put.run(),
            Person::Get(get) => get.run(),
            Person::Rm(rm) => rm.run(),
            Person::Mkdir(mkdir) => mkdir.run(),
            Person::Mv(mv) => mv.run(),
            Person::Cp(cp) => cp.run(),
            Person::Share(share) => share.run(),
            Person::Unshare(unshare) => unshare.run(),
            Person::Shares(shares) => shares.run(),
            Person::Shared(shared) => shared.run(),
            Person::Uploads(uploads) => uploads.run(),
        }
    }
}
