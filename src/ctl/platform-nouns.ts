import { apiKeys } from '../platform/keys/commands.ts'
import { audits } from '../platform/audits/commands.ts'
import { backup, secret, status } from '../platform/system/commands.ts'
import { clouds } from '../platform/clouds/commands.ts'
import { clusters } from '../platform/clusters/commands.ts'
import { events } from '../platform/events/commands.ts'
import { hosts } from '../platform/hosts/commands.ts'
import { login } from '../platform/commands/login.ts'
import { packs } from '../platform/packs/commands.ts'
import { profiles } from '../platform/profiles/commands.ts'
import { projects } from '../platform/projects/commands.ts'
import { tokens } from '../platform/tokens/commands.ts'
import { userSessions } from '../platform/commands/log-in.ts'
import { users } from '../platform/users/commands.ts'
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
