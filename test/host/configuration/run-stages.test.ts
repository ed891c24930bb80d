import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runStages } from '../../../src/configuration/run-stages.ts'

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'edgehostd-stages-'))
  onTestFinished(() => rm(made, { recursive: true, force: true }))
  return made
}
const base64 = (text: string) => Buffer.from(text).toString('base64')

it('files of a step come before its commands, with their modes', async () => {
  const at = await folder()
  const file = { path: join(at, 'new/plant.sh'), base64: base64('echo plant >>"$1"\n'), mode: 0o777 }
  const commands = [`sh ${file.path} ${at}/out`, `sh ${file.path} ${at}/out; echo "$0" >>${at}/out`]
  await runStages({ steps: [{ path: 'stages.boot[0]', files: [file], commands }] })
  expect(await readFile(join(at, 'out'), 'utf8')).toMatch(/^plant\nplant\n.*sh\n$/)
  expect((await stat(file.path)).mode & 0o777).toBe(0o777)
})

it('the first command that fails ends it, and is named with its message, without a secret', async () => {
  const at = await folder()
  const steps = [
    { path: 'stages.a[0]', files: [], commands: ['true', 'echo "no token=canary-12345 here" >&2; exit 7'] },
    { path: 'stages.b[0]', files: [], commands: [`touch ${at}/late`] },
  ]
  const failed = runStages({ steps })
  await expect(failed).rejects.toThrow('stages.a[0].commands[1] ended with 7: no token=******** here')
  await expect(stat(join(at, 'late'))).rejects.toThrow('ENOENT')
})

it('a file that cannot be written is named', async () => {
  const at = await folder()
  const file = { path: `${at}/x/y`, base64: base64('x'), mode: 0o644 }
  await runStages({ steps: [{ path: 's[0]', files: [{ ...file, path: `${at}/x` }], commands: [] }] })
  await expect(runStages({ steps: [{ path: 's[1]', files: [file], commands: [] }] })).rejects.toThrow(
    's[1].files[0] could not be written',
  )
})
