import Type from 'typebox'
import type { CommandResult } from '../../system/runner.ts'
import { defineProgramVerb, VerbRefused } from '../../verbs/verb.ts'

/** The program of changes; its head says what it does, and its exit codes. */
export const trialProgram = '/usr/lib/edgehostd/network-trial'

const unit = {
  description: 'change of the network',
  // The program waits for a lock, for units and for the disk; a decision may be on the disk when it takes longer.
  timeoutMs: 60_000,
  // It starts units of its own, and writes files wherever the owner of a link keeps them.
  properties: ['ProtectKernelModules=yes', 'ProtectKernelLogs=yes'],
}
const exact = { additionalProperties: false }
const read = (result: CommandResult) => result
const folder = Type.String({ pattern: '^/[^\\0\\n]{1,4095}$' })

/** Arms the revert of a change, and begins to apply it. */
export const tryNetworkChange = defineProgramVerb({
  name: 'try-network-change',
  role: 'admin',
  input: Type.Object({ folder }, exact),
  unit,
  audit: ({ folder: of }) => `try the change of the network in ${of}`,
  command: ({ folder: of }) => ({ program: trialProgram, args: ['start', of] }),
  read,
})

/** Keeps a change, or takes it back now. */
export const decideNetworkChange = defineProgramVerb({
  name: 'decide-network-change',
  role: 'admin',
  input: Type.Object(
    { action: Type.Enum(['confirm', 'ask']), uid: Type.String({ pattern: '^[0-9a-f-]{36}$' }) },
    exact,
  ),
  unit,
  audit: ({ action, uid }) =>
    `${action === 'confirm' ? 'keep' : 'take back'} the change of the network ${uid}`,
  command: ({ action, uid }) => ({ program: trialProgram, args: [action, uid] }),
  read,
})

/** Takes a change back with which something does not work any more. */
export const failNetworkChange = defineProgramVerb({
  name: 'fail-network-change',
  role: 'service',
  input: Type.Object(
    {
      uid: Type.String({ pattern: '^[0-9a-f-]{36}$' }),
      why: Type.String({ pattern: '^[^\\0\\n]{1,300}$' }),
    },
    exact,
  ),
  unit,
  audit: ({ uid, why }) => `take back the change of the network ${uid}: ${why}`,
  command: ({ uid, why }) => ({ program: trialProgram, args: ['fail', uid, why] }),
  read,
})

/** Looks whether the network is as before a change by now whose revert had failed, and puts back what other programs had put on its links. */
export const checkNetworkRevert = defineProgramVerb({
  name: 'check-network-revert',
  role: 'service',
  input: Type.Object({ uid: Type.String({ pattern: '^[0-9a-f-]{36}$' }) }, exact),
  unit,
  audit: ({ uid }) => `look whether the network is as before the change ${uid}`,
  command: ({ uid }) => ({ program: trialProgram, args: ['check', uid] }),
  read,
})

/** Takes away what edgehostd has made of the network, and puts back what it has changed in files of others, as far as it has kept that. */
export const removeNetwork = defineProgramVerb({
  name: 'remove-network',
  role: 'admin',
  input: Type.Object({ folder }, exact),
  unit: {
    ...unit,
    // A link by DHCP of ifupdown may take long.
    timeoutMs: 600_000,
    // ifup leaves its DHCP clients in the unit.
    properties: [...unit.properties, 'KillMode=process'],
  },
  audit: () => 'remove what edgehostd has made of the network',
  command: ({ folder: of }) => ({ program: trialProgram, args: ['wipe', of] }),
  read({ exitCode, stderr }) {
    if (exitCode === 0) return
    throw new VerbRefused(
      `network-trial wipe ended with ${exitCode ?? 'a signal'}: ${stderr.trim().split('\n').at(-1) || 'without a message'}; see: journalctl -t edgehostd`,
    )
  },
})

/** Finishes or discards what a power cut has left. */
export const finishNetworkChanges = defineProgramVerb({
  name: 'finish-network-changes',
  role: 'service',
  input: Type.Object({ folder }, exact),
  unit,
  audit: () => 'finish or discard the change of the network that was open',
  command: ({ folder: of }) => ({ program: trialProgram, args: ['boot', of] }),
  read,
})
