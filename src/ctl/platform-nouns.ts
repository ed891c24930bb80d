import { apiKeys } from '../platform/commands/api-keys.ts'
import { audits } from '../platform/commands/audits.ts'
import { backup } from '../platform/commands/backup.ts'
import { clouds } from '../platform/commands/clouds.ts'
import { clusters } from '../platform/commands/clusters.ts'
import { events } from '../platform/commands/events.ts'
import { hosts } from '../platform/commands/hosts.ts'
import { login } from '../platform/commands/login.ts'
import { packs } from '../platform/commands/packs.ts'
import { profiles } from '../platform/commands/profiles.ts'
import { projects } from '../platform/commands/projects.ts'
import { secret } from '../platform/commands/secret.ts'
import { status } from '../platform/commands/status.ts'
import { tokens } from '../platform/commands/tokens.ts'
import { userSessions } from '../platform/commands/user-sessions.ts'
import { users } from '../platform/commands/users.ts'
import { sumCommands } from './command-table.ts'
import { api } from './commands/api.ts'
import { ofProgram } from './commands/program.ts'

/** All commands of edgeplatformctl, in the order of the help. A new noun is one line here. */
export const commandTable = sumCommands(
  [
    status,
    login,
    users,
    projects,
    apiKeys,
    tokens,
    hosts,
    packs,
    profiles,
    clusters,
    clouds,
    events,
    audits,
    backup,
    secret,
    api,
    ofProgram,
  ],
  userSessions,
)
