//! Settings of calls to destinations that clients configure: webhooks, converters, backends of subresources.

/// Where clients may lead this server, and what they read about failures.
#[derive(clap::Args, Debug, Clone)]
#[command(next_help_heading = "Calls to other servers")]
pub(crate) struct OutboundSettings {
    /// Let webhooks, converters and other destinations in objects be on loopback [default: while this server listens on loopback only]
    #[arg(
        long,
        env = "BAREBOAT_ALLOW_LOOPBACK_DESTINATIONS",
        num_args = 0..=1,
        default_missing_value = "true",
        hide_possible_values = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub(crate) allow_loopback_destinations: Option<bool>,

    /// Tell clients why a call to such a destination failed, not only the log [default: while this server listens on loopback only]
    #[arg(
        long,
        env = "BAREBOAT_SHOW_OUTBOUND_ERRORS",
        num_args = 0..=1,
        default_missing_value = "true",
        hide_possible_values = true,
        action = clap::ArgAction::Set,
        value_name = "BOOL"
    )]
    pub(crate) show_outbound_errors: Option<bool>,
}

impl OutboundSettings {
    /// Applies what is set to a server.
    pub(crate) fn install(&self, mut builder: bareboat::ServerBuilder) -> bareboat::ServerBuilder {
        if let Some(allowed) = self.allow_loopback_destinations {
            builder = builder.loopback_destinations(allowed);
        }
        if let Some(shown) = self.show_outbound_errors {
            builder = builder.outbound_error_details(shown);
        }
        builder
    }
}
