import { chmod, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { maskShapes } from '../base/mask.ts'
import { replaceFile } from '../system/files.ts'
import { CommandFailed, createRunner } from '../system/runner.ts'
import { VerbRefused } from '../verbs/verb.ts'
import type { StageStep } from './stage-steps.ts'

/** For each command. */
const commandMs = 300_000

/**
 * The work of the verb `run-stages`: each step in its order, its files before its commands. The first that fails ends it.
 * @throws VerbRefused with the path of the step
 */
export async function runStages({ steps }: { readonly steps: readonly StageStep[] }): Promise<void> {
  const { run } = createRunner()
  for (const { path, files, commands } of steps) {
    for (const [index, file] of files.entries()) {
      try {
        await mkdir(dirname(file.path), { recursive: true })
        await replaceFile(file.path, Buffer.from(file.base64, 'base64'), file.mode)
        // What the umask has taken.
        await chmod(file.path, file.mode)
      } catch (error) {
        throw new VerbRefused(`${path}.files[${index}] could not be written: ${(error as Error).message}`)
      }
    }
    for (const [index, command] of commands.entries()) {
      const failed = await run('/bin/sh', ['-c', command], { timeoutMs: commandMs }).then(
        ({ exitCode, stderr }) =>
          exitCode === 0
            ? undefined
            : `ended with ${exitCode ?? 'a signal'}: ${maskShapes(stderr.trim().split('\n').at(-1) ?? '').slice(0, 200) || 'without a message'}`,
        (error: unknown) => {
          if (error instanceof CommandFailed) return error.message
          throw error
        },
      )
      if (failed !== undefined) throw new VerbRefused(`${path}.commands[${index}] ${failed}`)
    }
  }
}
