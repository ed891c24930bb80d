import { defineCommand, type Noun, sumCommands } from '../ctl/command.ts'
import { onHost } from '../ctl/on-host.ts'
import { passwordStdin } from '../ctl/options.ts'
import { sessionEnds, api, ofProgram } from '../ctl/commands.ts'
import { audit } from '../audit/commands/audit.ts'
import { ownAccount, sessions } from '../auth/commands/sessions.ts'
import { cluster } from '../cluster/commands/cluster.ts'
import { definition } from '../authoring/commands/definition.ts'
import { definitionsOnHost } from '../definition/commands/definition.ts'
import { config } from '../config/commands/config.ts'
import { configuration } from '../configuration/commands/configuration.ts'
import { content, registry } from '../content/commands/content.ts'
import { hostFiles, logs, networkDiagnosis } from '../diagnosis/commands/diagnosis.ts'
import { host } from '../host/commands/host.ts'
import { images } from '../images/commands/images.ts'
import { inventory } from '../inventory/commands/inventory.ts'
import { network } from '../network/commands/network.ts'
import { networkChanges } from '../network/trial/commands/changes.ts'
import { platform } from '../uplink/commands/platform.ts'
import { power } from '../power/commands/power.ts'
import { setup } from '../setup/commands/setup.ts'
import { support } from '../support/commands/support.ts'
import { hostSessions } from './host-sessions.ts'

const login: Noun = [
  defineCommand({
    name: 'login',
    arguments: ['[USER]'],
    summary: 'Log in on the host of --host with an account of its operating system',
    details:
      'Asks for the password without an echo. The tokens are kept under ~/.config/edgehostctl, readable only by their owner, and are renewed automatically. If the password has expired, a new one is asked for.',
    options: {
      'password-stdin': passwordStdin,
    },
    load: onHost(async () => (await import('./login.ts')).login),
  }),
  ...sessionEnds,
]

const status: Noun = [
  defineCommand({
    name: 'status',
    summary: 'Show the state of this host on one screen, and what to do next',
    load: onHost(async () => (await import('./status.ts')).status),
  }),
]

/** All commands of edgehostctl, in the order of the help. A new noun is one line here. */
export const commandTable = sumCommands(
  [
    status,
    login,
    host,
    setup,
    power,
    inventory,
    hostFiles,
    configuration,
    network,
    networkChanges,
    networkDiagnosis,
    logs,
    ownAccount,
    sessions,
    config,
    audit,
    api,
    cluster,
    definition,
    definitionsOnHost,
    content,
    images,
    registry,
    platform,
    support,
    ofProgram,
  ],
  hostSessions,
)
