"""What a person types and sees: one subcommand per file in `commands/`, options from settings."""
