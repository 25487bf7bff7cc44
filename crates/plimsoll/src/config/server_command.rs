//! The commands that run a server, and their names for its settings.
//!
//! Every setting is an argument of `plimsoll serve`; the other servers have flags of their own for some. It
//! parses nothing. Invariant: a message for an operator names a flag only as the operator's command has it.

/// The argument of the PROXY protocol from clients, which is no setting of a proxy alone.
pub(super) const PROXY_PROTOCOL: &str = "proxy_protocol";
/// The prefix of the settings of a proxy alone.
const OF_PROXY: &str = "proxy_";

/// A command that runs a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ServerCommand {
    /// `plimsoll serve`.
    #[default]
    Serve,
    /// `plimsoll proxy`.
    Proxy,
    /// `plimsoll auth`.
    Auth,
    /// `plimsoll store`.
    Store,
}

impl ServerCommand {
    /// Returns the command as it is typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ServerCommand::Serve => "plimsoll serve",
            ServerCommand::Proxy => "plimsoll proxy",
            ServerCommand::Auth => "plimsoll auth",
            ServerCommand::Store => "plimsoll store",
        }
    }

    /// Returns the command's flag for the setting `id` of `plimsoll serve`.
    pub(crate) fn flag(self, id: &str) -> String {
        let name = match (self, id) {
            (ServerCommand::Serve, id) | (_, id @ PROXY_PROTOCOL) => id,
            (ServerCommand::Proxy, "https") => "listen_tls",
            (_, "http" | "https") => "listen",
            (ServerCommand::Proxy, "proxy_header") => "send_proxy_protocol",
            (_, id) => id.strip_prefix(OF_PROXY).unwrap_or(id),
        };
        format!("--{}", name.replace('_', "-"))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Plimsoll;

    #[test]
    fn a_setting_has_the_flag_that_its_command_has() {
        for (command, name, ids) in [
            (ServerCommand::Serve, "serve", &["http", "metrics", "proxy_cache_size", "proxy_protocol"][..]),
            (ServerCommand::Proxy, "proxy", &["http", "metrics", "proxy_cache_size", "proxy_protocol"]),
            (
                ServerCommand::Proxy,
                "proxy",
                &["proxy_header", "proxy_origin", "proxy_channel", "grace", "https"],
            ),
            (ServerCommand::Auth, "auth", &["http", "data", "threads"]),
            (ServerCommand::Store, "store", &["http", "data", "threads"]),
        ] {
            assert_eq!(command.name(), format!("plimsoll {name}"));
            let typed = Plimsoll::command();
            let flags = typed.find_subcommand(name).unwrap().get_arguments();
            let flags: Vec<String> = flags.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
            for id in ids {
                assert!(flags.contains(&command.flag(id)), "{name}: {}", command.flag(id));
            }
        }
    }
}
