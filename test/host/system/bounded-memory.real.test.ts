import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createBoundedRunner } from '../../../src/system/bounded-memory.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { isKitMissing, kit, kitVersions, type KitVersion } from '../../support/kubernetes-kit.ts'

const bounded = createBoundedRunner(createRunner())
const folder = await mkdtemp(join(tmpdir(), 'bounded-'))
afterAll(() => rm(folder, { recursive: true }))

const tooMuch = {
  reason: 'too-much-memory',
  message: 'helm needs more memory than a program may take here, the limit of 2048 MiB',
}
const nothing = () => undefined

describe.skipIf(isKitMissing())('programs that read what is not trusted', { timeout: 300_000 }, () => {
  const program = async (name: string, version?: KitVersion) =>
    `${(await kit(version ?? kitVersions[0]))?.programs}/${name}`

  it('end at the bound for their memory, whether their lines are followed or not', async () => {
    const chart = join(folder, 'chart')
    await mkdir(join(chart, 'templates'), { recursive: true })
    await writeFile(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: a\nversion: 1.0.0\n')
    await writeFile(join(chart, 'templates/a.yaml'), 'a: {{ repeat 1900000000 "a" | quote }}')
    const [helm, args] = [await program('helm'), ['template', chart]]
    await expect(bounded.run(helm, args, { timeoutMs: 120_000 })).rejects.toMatchObject(tooMuch)
    await expect(bounded.stream(helm, args, { timeoutMs: 120_000, onLine: nothing })).rejects.toMatchObject(
      tooMuch,
    )
  })

  it.each(kitVersions)('do their usual work within it: Kubernetes %s', async (version) => {
    const work = [
      ['kubeadm', 'init', '--dry-run', '--ignore-preflight-errors=all', `--kubernetes-version=v${version}`],
      ['kubectl', 'version', '--client'],
      ['kubelet', '--version'],
    ] as const
    for (const [name, ...args] of work) {
      const environment = { KUBEADM_INIT_DRYRUN_DIR: folder }
      const options = { timeoutMs: 120_000, environment }
      const { exitCode, stderr } = await bounded.run(await program(name, version), args, options)
      expect({ name, exitCode, stderr }).toMatchObject({ name, exitCode: 0 })
    }
  })

  it('say why they were not begun, whether their lines are followed or not', async () => {
    const missing = join(folder, 'missing')
    const notBegun = {
      reason: 'not-started',
      message: `missing cannot be run: ${missing}: No such file or directory`,
    }
    const options = { timeoutMs: 20_000 }
    await expect(bounded.run(missing, [], options)).rejects.toMatchObject(notBegun)
    await expect(bounded.stream(missing, [], { ...options, onLine: nothing })).rejects.toMatchObject(notBegun)
  })
})
