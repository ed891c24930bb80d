import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../system/files.ts'
import { CommandFailed, type CommandRunner } from '../../../system/runner.ts'
import { unitFolder } from '../../engine/paths.ts'
import { StepFailed } from '../../step.ts'
import { addressUnit } from '../../../host/network/network.ts'
import { addressUnitText, heldPrefix, type HeldAddress } from './address-unit.ts'

const timeoutMs = 30_000

/**
 * Has the unit hold a virtual address, now and after each start of the host. An address that it held before is given up.
 * @throws StepFailed with the reason of the kernel or of systemd
 */
export async function holdAddress(runner: CommandRunner, held: HeldAddress): Promise<void> {
  const text = addressUnitText(held)
  // With the commands of the old unit, which know its address.
  if ((await readUnit()) !== text)
    await run(runner, 'systemctl', ['stop', addressUnit]).catch(() => undefined)
  // Fails at once, with the words of the kernel, where the unit would only try again.
  await run(runner, 'ip', ['address', 'replace', heldPrefix(held.address), 'dev', held.networkInterface])
  await replaceFile(join(unitFolder, addressUnit), text, 0o644)
  await run(runner, 'systemctl', ['daemon-reload'])
  await run(runner, 'systemctl', ['enable', '--quiet', addressUnit])
  await run(runner, 'systemctl', ['restart', addressUnit])
}

/** Takes the unit and its address from the host; one that is not there is no error. */
export async function dropAddress(runner: CommandRunner): Promise<void> {
  // The unit may be unknown.
  await run(runner, 'systemctl', ['disable', '--quiet', '--now', addressUnit]).catch(() => undefined)
  await rm(join(unitFolder, addressUnit), { force: true })
  await run(runner, 'systemctl', ['daemon-reload'])
  await run(runner, 'systemctl', ['reset-failed', addressUnit]).catch(() => undefined)
}

const readUnit = () => readFile(join(unitFolder, addressUnit), 'utf8').catch(() => undefined)

async function run(runner: CommandRunner, program: string, args: readonly string[]): Promise<void> {
  const ended = await runner.run(program, args, { timeoutMs }).catch((error: unknown) => {
    throw error instanceof CommandFailed ? new StepFailed(error.message, { cause: error }) : error
  })
  if (ended.exitCode === 0) return
  const said = (ended.stderr.trim() || ended.stdout.trim()).split('\n').slice(0, 2).join('; ')
  throw new StepFailed(`${program} ${args.join(' ')}: ${said || `exit code ${ended.exitCode ?? 'none'}`}`)
}
