//! The client commands: one file for each command, whose doc comments are its help.
//!
//! Transfers are not here ([`crate::upload`], [`crate::download`]). Invariants: every command that prints
//! can print JSON. The help of every command has examples.

mod cp;
mod find;
mod get;
mod health;
mod link;
mod links;
mod login;
mod logout;
mod ls;
mod mkdir;
mod mv;
mod passwd;
mod put;
mod rm;
mod server_args;
mod share;
mod shared;
mod shares;
mod signup;
mod trash;
mod unlink;
mod unshare;
mod uploads;
mod whoami;

use clap::Subcommand;

use crate::Runtime;

/// The client commands.
#[derive(Subcommand)]
#[expect(missing_docs, reason = "the help of each command is at its struct")]
pub enum ClientCommand {
    Signup(signup::Signup),
    Login(login::Login),
    Logout(logout::Logout),
    Whoami(whoami::Whoami),
    Health(health::Health),
    Passwd(passwd::Passwd),
    Ls(ls::Ls),
    Find(find::Find),
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
    Link(link::Link),
    Unlink(unlink::Unlink),
    Links(links::Links),
    Trash(trash::Trash),
    Uploads(uploads::Uploads),
}

impl ClientCommand {
    /// Runs the command.
    pub fn run(self, runtime: Runtime) -> anyhow::Result<()> {
        match self {
            ClientCommand::Signup(signup) => signup.run(runtime),
            ClientCommand::Login(login) => login.run(runtime),
            ClientCommand::Logout(logout) => logout.run(runtime),
            ClientCommand::Whoami(whoami) => whoami.run(runtime),
            ClientCommand::Health(health) => health.run(runtime),
            ClientCommand::Passwd(passwd) => passwd.run(runtime),
            ClientCommand::Ls(ls) => ls.run(runtime),
            ClientCommand::Find(find) => find.run(runtime),
            ClientCommand::Put(put) => put.run(runtime),
            ClientCommand::Get(get) => get.run(runtime),
            ClientCommand::Rm(rm) => rm.run(runtime),
            ClientCommand::Mkdir(mkdir) => mkdir.run(runtime),
            ClientCommand::Mv(mv) => mv.run(runtime),
            ClientCommand::Cp(cp) => cp.run(runtime),
            ClientCommand::Share(share) => share.run(runtime),
            ClientCommand::Unshare(unshare) => unshare.run(runtime),
            ClientCommand::Shares(shares) => shares.run(runtime),
            ClientCommand::Shared(shared) => shared.run(runtime),
            ClientCommand::Link(link) => link.run(runtime),
            ClientCommand::Unlink(unlink) => unlink.run(runtime),
            ClientCommand::Links(links) => links.run(runtime),
            ClientCommand::Trash(trash) => trash.run(runtime),
            ClientCommand::Uploads(uploads) => uploads.run(runtime),
        }
    }
}
