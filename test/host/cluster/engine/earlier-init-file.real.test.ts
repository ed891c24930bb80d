import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { certificatesFolderIn } from '../../../../src/cluster/engine/certificates.ts'
import { kubeadmConfig, nodeNameIn, usesIPv6 } from '../../../../src/cluster/engine/kubeadm-config.ts'
import { documentsOf, parsePackConfig } from '../../../../src/cluster/engine/pack-config.ts'
import { readInitFile, upgradeConfiguration } from '../../../../src/cluster/engine/upgrade/check.ts'
import { createRunner } from '../../../../src/system/runner.ts'
import { isKitMissing, kit, kitVersions } from '../../../support/kubernetes-kit.ts'

/** The file for `kubeadm init` as it was written until files for kubeadm became JSON; it stays until the next change of the cluster. */
const file = join(import.meta.dirname, '../../../fixtures/kubeadm/init-file-of-c80bc925.txt')
const text = readFileSync(file, 'utf8')
const config = `
clusterConfiguration:
  apiServer:
    certSANs: ["10.1.2.3", "shop.example", "1e3"]
    extraArgs: [{name: audit-log-maxage, value: "30"}, {name: profiling, value: "false"}, {name: event-ttl, value: "1h0m0s"}]
    extraVolumes: [{name: audit, hostPath: /var/log/apiserver, mountPath: /var/log/apiserver, pathType: DirectoryOrCreate}]
  controllerManager: {extraArgs: [{name: terminated-pod-gc-threshold, value: "0010"}]}
  etcd: {local: {dataDir: /etc/kubernetes/etcd}}
  networking: {podSubnet: "10.9.0.0/16,fd00:9::/56", serviceSubnet: "10.96.0.0/12,fd00:96::/112"}
  certificatesDir: /etc/kubernetes/pki
initConfiguration:
  patches: {directory: "/etc/kubernetes/patches 1"}
  nodeRegistration: {kubeletExtraArgs: [{name: event-qps, value: "0"}]}
kubeletConfiguration: {failSwapOn: false, maxPods: 250, evictionHard: {memory.available: "100Mi"}, clusterDNS: ["10.96.0.10"], imageGCHighThresholdPercent: 85}
kubeProxyConfiguration: {conntrack: {maxPerCore: 0}, mode: iptables}
`

describe('the file for kubeadm that an earlier version has written as YAML', () => {
  it('is read as it was written', async () => {
    expect(documentsOf(text)).toEqual(parseAllDocuments(text).map((each) => each.toJS() as unknown))
    expect(nodeNameIn(text)).toBe('0x1f-press')
    expect(usesIPv6(text)).toBe(true)
    expect(readInitFile(text)).toEqual({ etcd: '/etc/kubernetes/etcd', patches: '/etc/kubernetes/patches 1' })
    expect(await certificatesFolderIn(text)).toBe('/etc/kubernetes/pki')
  })

  it('differs from that of today by the name of the node and the time of its pods at a stop alone', () => {
    const kubernetes = { pack: 'edge-k8s', version: '1.34.4', config, stages: [] }
    const node = {
      ...{ name: '0x1f-press', address: '192.0.2.7', endpoint: '192.0.2.9', poolName: 'control' },
      ...{ labels: {}, taints: [{ key: 'gpu', value: 'on-2', effect: 'NoSchedule' as const }] },
      runsWorkloads: false,
    }
    const today = kubeadmConfig({ name: 'shop', kubernetes, node }, parsePackConfig(kubernetes))
    const withoutName = today.replace(
      /,\s+\{\s+"name": "hostname-override",\s+"value": "0x1f-press"\s+\}/,
      '',
    )
    expect(withoutName).not.toBe(today)
    const grace = ['shutdownGracePeriod', 'shutdownGracePeriodCriticalPods']
    const ofToday = documentsOf(withoutName).map((each) =>
      Object.fromEntries(Object.entries(each as object).filter(([key]) => !grace.includes(key))),
    )
    expect(ofToday).not.toEqual(documentsOf(withoutName))
    expect(ofToday).toEqual(documentsOf(text))
  })
})

describe.skipIf(isKitMissing()).each(kitVersions)('kubeadm %s', (version) => {
  it('takes that file, and the file for an upgrade that is made of it', { timeout: 60_000 }, async () => {
    const kubeadm = `${(await kit(version))?.programs}/kubeadm`
    const folder = await mkdtemp(join(tmpdir(), 'init-file-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const given = join(folder, 'given.yaml')
    const validate = async (input: string) => {
      await writeFile(given, input)
      return createRunner().run(kubeadm, ['config', 'validate', '--config', given], { timeoutMs: 50_000 })
    }
    expect(await validate(text.replace('1.34.4', version))).toMatchObject({ exitCode: 0, stdout: 'ok\n' })
    const upgrade = upgradeConfiguration(version, { patches: '/patches \u0085 \u2028' })
    expect(upgrade).toMatch(/^[\x20-\x7e\n]+$/)
    expect(await validate(upgrade)).toMatchObject({ exitCode: 0, stdout: 'ok\n' })
  })
})
