import { chmod, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DesiredKubeadm } from '../../../../src/cluster/engine/kubeadm-config.ts'
import { createKubeadmFiles } from '../../../../src/cluster/engine/kubeadm-files.ts'
import { createRunner } from '../../../../src/system/runner.ts'
import { isKitMissing, kit, kitVersions } from '../../../support/kubernetes-kit.ts'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'edgehostd-kubeadm-'))
})
afterEach(() => rm(home, { recursive: true }))

const wantedOf = (version: string, config: string): DesiredKubeadm => ({
  name: 'plant',
  kubernetes: { pack: 'edge-k8s', version, config, stages: [] },
  node: {
    ...{ name: 'edge-1', address: '192.0.2.7', endpoint: '192.0.2.9', poolName: 'control' },
    ...{ labels: {}, taints: [], runsWorkloads: true },
  },
})

describe.skipIf(isKitMissing()).each(kitVersions)('kubeadm %s', (version) => {
  const program = async () => `${(await kit(version))?.programs}/kubeadm`
  const files = () => createKubeadmFiles({ folder: home, runner: createRunner() })

  it('accepts the file that is made of a pack in the form v1beta4, and names its images', async () => {
    const { make, validate, images } = files()
    const config = `
clusterConfiguration: {networking: {podSubnet: 10.9.0.0/16}, scheduler: {extraArgs: [{name: v, value: "2"}]}}
kubeletConfiguration: {failSwapOn: false}
kubeProxyConfiguration: {conntrack: {maxPerCore: 0}}
`
    const text = await make(await program(), wantedOf(version, config))
    await validate(await program(), text)
    const listed = await images(await program(), text)
    expect(listed).toHaveLength(7)
    expect(listed).toContain(`registry.k8s.io/kube-apiserver:v${version}`)
    expect(listed.filter((image) => image.includes('/pause:'))).toHaveLength(1)
    // What was asked had secrets.
    expect(await readdir(home)).toEqual([])
  })

  it('migrates a pack in the form v1beta3, and keeps its arguments and no token', async () => {
    const { make, validate } = files()
    const config = `
clusterConfiguration:
  apiServer:
    extraArgs: {advertise-address: 0.0.0.0, audit-log-maxage: "30"}
    extraVolumes: [{name: audit, hostPath: /var/log/apiserver, mountPath: /var/log/apiserver, pathType: DirectoryOrCreate}]
    timeoutForControlPlane: 10m0s
  controllerManager: {extraArgs: {profiling: "false"}}
  etcd: {local: {dataDir: /etc/kubernetes/etcd, extraArgs: {listen-client-urls: "https://0.0.0.0:2379"}}}
  networking: {podSubnet: 10.9.0.0/16}
initConfiguration:
  localAPIEndpoint: {}
  nodeRegistration: {kubeletExtraArgs: {event-qps: "0"}}
joinConfiguration: {discovery: {}}
`
    const text = await make(await program(), wantedOf(version, config))
    await validate(await program(), text)
    expect(text).toMatch(/"name": "audit-log-maxage",\s+"value": "30"/)
    expect(text).toMatch(/"name": "event-qps",\s+"value": "0"/)
    expect(text).toContain('"controlPlaneComponentHealthCheck": "10m0s"')
    expect(text).not.toMatch(/advertise-address|0\.0\.0\.0"|bootstrapTokens/)
  })

  it('takes names and texts that its YAML would read as another type without quotes', async () => {
    const { make, validate } = files()
    const wanted = wantedOf(
      version,
      'clusterConfiguration: {apiServer: {extraArgs: [{name: profiling, value: "off"}, {name: event-ttl, value: "1_0"}]}}',
    )
    const node = {
      ...{ ...wanted.node, name: 'y' },
      taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' as const }],
    }
    const text = await make(await program(), { ...wanted, name: 'no', node })
    await validate(await program(), text)
  })

  it('refuses a field that it does not know, with the reason in one line', async () => {
    const { make, validate } = files()
    const text = await make(await program(), wantedOf(version, 'clusterConfiguration: {podSubnets: x}'))
    await expect(validate(await program(), text)).rejects.toThrow(/unknown field "podSubnets"$/)
  })
})

describe('an answer of kubeadm', () => {
  /** A kubeadm that notes each question. */
  async function plant(name = 'kubeadm') {
    const [program, asked] = [join(home, name), join(home, 'asked')]
    await writeFile(
      program,
      `#!/bin/sh\necho asked >> ${asked}\ngrep -q refused "$5" && exit 1\necho ${name}\n`,
    )
    await chmod(program, 0o755)
    const questions = async () => (await readFile(asked, 'utf8')).trim().split('\n').length
    return {
      program,
      questions,
      files: createKubeadmFiles({ folder: join(home, 'files'), runner: createRunner() }),
    }
  }

  it('is given again for the same program and text, also while it is asked for', async () => {
    const { program, questions, files } = await plant()
    const ask = () => files.images(program, 'one')
    expect(await Promise.all([ask(), ask()])).toEqual([['kubeadm'], ['kubeadm']])
    expect(await ask()).toEqual(['kubeadm'])
    expect(await questions()).toBe(1)
    await files.images(program, 'two')
    expect(await questions()).toBe(2)
  })

  it('is asked for anew when the program at its path is another one', async () => {
    const { program, questions, files } = await plant()
    await files.images(program, 'one')
    const other = await plant('later')
    await rename(other.program, program)
    expect(await files.images(program, 'one')).toEqual(['later'])
    expect(await questions()).toBe(2)
  })

  it('is asked for anew after it was refused, or was ended by the signal of another caller', async () => {
    const { program, questions, files } = await plant()
    const refused = () => expect(files.images(program, 'refused')).rejects.toThrow()
    await refused()
    await refused()
    expect(await questions()).toBe(2)
    const ended = new AbortController()
    const cut = files.images(program, 'three', ended.signal)
    const other = files.images(program, 'three')
    ended.abort()
    // The one that looks at the program first asks; if that is the other one, this one gets its answer.
    await Promise.allSettled([cut])
    expect(await other).toEqual(['kubeadm'])
  })
})
