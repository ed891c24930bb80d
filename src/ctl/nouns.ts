import { audit } from '../audit/commands/audit.ts'
import { sessions } from '../auth/commands/sessions.ts'
import { cluster } from '../cluster/commands/cluster.ts'
import { definition } from '../authoring/commands/definition.ts'
import { config } from '../config/commands/config.ts'
import { content, registry } from '../content/commands/content.ts'
import { host } from '../host/commands/host.ts'
import { images } from '../images/commands/images.ts'
import { inventory } from '../inventory/commands/inventory.ts'
import { platform } from '../uplink/commands/platform.ts'
import { support } from '../support/commands/support.ts'
import { sumCommands } from './command-table.ts'
import { api } from './commands/api.ts'
import { login } from './commands/login.ts'
import { ofProgram } from './commands/program.ts'
import { hostSessions } from './host-sessions.ts'
import { status } from './commands/status.ts'

/** All commands of edgehostctl, in the order of the help. A new noun is one line here. */
export const commandTable = sumCommands(
  [
    status,
    login,
    host,
    inventory,
    sessions,
    config,
    audit,
    api,
    cluster,
    definition,
    content,
    images,
    registry,
    platform,
    support,
    ofProgram,
  ],
  hostSessions,
)
