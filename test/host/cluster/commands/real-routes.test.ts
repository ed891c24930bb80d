import { X509Certificate } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../../support/ctl.ts'
import { definitionArchive } from '../../../support/definition-archives.ts'
import { plantCluster } from '../../../support/planted-cluster.ts'
import { prepareProgram } from '../../../support/programs.ts'
import { createWireEdge, type WireEdge } from '../../../support/wire-edge.ts'

let ctl: Ctl
let wire: WireEdge
let host: string
beforeEach(async () => {
  ctl = createCtl()
  wire = await createWireEdge({ prepareProgram: prepareProgram() })
  plantCluster(wire.edge)
  host = `--host=127.0.0.1:${wire.port}`
  const { fingerprint256 } = new X509Certificate(wire.cert)
  const login = await ctl.run(
    [host, 'login', 'alice', '--password-stdin', `--fingerprint=${fingerprint256}`],
    'alice pass\n',
  )
  expect(login.exitCode, login.stderr).toBe(0)
})
afterEach(async () => {
  await wire.stop()
  rmSync(ctl.home, { recursive: true })
})

const run = (words: string, input?: string) => ctl.run([host, 'cluster', ...words.split(' ')], input)

it('shows the revisions and the settings of a cluster as the daemon has them', async () => {
  const revisions = await run('revisions')
  expect(revisions.stdout).toMatch(/^1 \* +\d{4}-.* alice +create +factory 1\.0\.0 +1\.34\.4 +applying/m)
  expect((await run('settings')).stdout).toMatch(/NTP servers: none\n +SSH keys: none/)
  expect((await run('diff')).stdout).toMatch(/Revision 1 is being applied: edgehostctl cluster watch/)
})

it('sends a definition into the slot update, and lists what the real checks find', async () => {
  const file = join(ctl.home, 'factory.tgz')
  writeFileSync(file, definitionArchive())
  const ended = await run(`diff --definition ${file}`)
  expect(ended.stderr).toMatch(/Uploaded: definition factory \S+ is in the slot update/)
  expect(ended.stdout, ended.stderr).toMatch(/Pre-flight: the change is not possible/)
  expect(ended.stdout).toMatch(/^SEVERITY +CODE +WHERE +PROBLEM\nerror /m)
  expect(ended.exitCode).toBe(1)
  const again = await run(`apply --yes --definition ${file}`)
  expect(again.exitCode).toBe(1)
  expect(again.stdout).toMatch(/was in the slot update of the host already/)
  expect(again.stderr).toMatch(/errors? (was|were) found, so nothing was applied/)
  expect(JSON.parse((await run('revisions -o json')).stdout)).toMatchObject({ items: [{ revision: 1 }] })
})

it('a refusal of the daemon reaches the operator in its words', async () => {
  const ended = await run('rollback --yes')
  expect(ended.exitCode).toBe(1)
  expect(ended.stderr).toMatch(/no revision before the present one was good/)
  const none = await run('rollback 7 --yes')
  expect(none.stderr).toMatch(/revision 7 is not kept/)
})
