import { describe, expect, it } from 'vitest'
import type { ClusterChangeDryRun } from '../../../../src/cluster/desired/schemas.ts'
import { renderChange } from '../../../../src/cluster/commands/perform-change.ts'
import { shortKey } from '../../../../src/ctl/request-body.ts'

type Diff = NonNullable<ClusterChangeDryRun['diff']>

const empty: Diff = { isEmpty: false, packs: [], variables: [], settings: {}, effects: [] }
const changeOf = (diff: Partial<Diff>, more: Partial<ClusterChangeDryRun> = {}): ClusterChangeDryRun => ({
  ...{ isPossible: true, isChanged: true, isHeld: false, problems: [], plan: [] },
  ...{ diff: { ...empty, ...diff }, ...more },
})
const show = (diff: Partial<Diff>, more: Partial<ClusterChangeDryRun> = {}, columns = Infinity) =>
  renderChange(changeOf(diff, more), [], { columns, isColoured: false })

const pack: Diff['packs'][number] = {
  ...{ id: 'p1/web', name: 'web', change: 'changed', fromVersion: '1.0.0', toVersion: '1.1.0' },
  fields: ['version', 'values', 'charts', 'manifests'],
  ...{ manifests: [{ name: 'page', change: 'added' }], namespaces: [], isApplied: true, isDrained: true },
  charts: [
    {
      ...{ name: 'web', namespace: 'shop', release: 'web', change: 'changed', valuesChanged: true },
      ...{ fromVersion: '6.0.0', toVersion: '6.1.0' },
    },
  ],
}

describe('a change of the cluster for people', () => {
  it('has a row for each pack: its versions, and what of it changes', () => {
    const text = show({
      packs: [
        pack,
        {
          ...{ ...pack, name: 'old', change: 'removed', fields: [], charts: [] },
          ...{ manifests: [{ name: 'job', change: 'removed' }], fromVersion: '2.0.0' },
          toVersion: undefined as never,
        },
        { ...pack, name: 'same', fields: ['version'], charts: [], manifests: [], isApplied: false },
      ],
    })
    expect(text).toMatch(/^PACK +VERSION +CHANGE +OF IT$/m)
    expect(text).toMatch(
      /^web +1\.0\.0 -> 1\.1\.0 +changed +values, chart web 6\.0\.0 -> 6\.1\.0, manifests \+page$/m,
    )
    expect(text).toMatch(/^old +2\.0\.0 +removed +manifests -job$/m)
    expect(text).toMatch(/^same +1\.0\.0 -> 1\.1\.0 +changed +nothing is applied for it$/m)
  })

  it('says of another Kubernetes that going back discards changes then, and of another configuration not', () => {
    const of = (to: string, configurationChanged: boolean) =>
      show({ kubernetes: { from: '1.33.8', to, configurationChanged } })
    expect(of('1.34.4', false)).toMatch(/Kubernetes: 1\.33\.8 -> 1\.34\.4$/m)
    expect(of('1.34.4', true)).toMatch(/-> 1\.34\.4, with another configuration$/m)
    expect(of('1.34.4', false)).toMatch(
      /going back to 1\.33\.8 restores a copy, and discards what was written/,
    )
    expect(of('1.33.8', true)).toMatch(/Kubernetes: 1\.33\.8, with another configuration$/m)
    expect(of('1.33.8', true)).not.toContain('discards')
  })

  it('shows values, and of sensitive ones none; long ones are cut, empty ones are visible', () => {
    const variable = { profileUid: 'p1', isSensitive: false, change: 'changed' as const }
    const text = show({
      variables: [
        { ...variable, name: 'replicas', from: '2', to: '' },
        { ...variable, name: 'password', isSensitive: true, from: 'hunter2', to: 'hunter3' },
        { ...variable, name: 'token', isSensitive: true, change: 'added' },
        { ...variable, name: 'text', from: 'x', to: 'y'.repeat(500) },
        { ...variable, name: 'gone', change: 'removed', from: 'z' },
      ],
    })
    expect(text).toMatch(/^replicas +changed +2 +""$/m)
    expect(text).toMatch(/^password +changed +\*{8} +\*{8}$/m)
    expect(text).toMatch(/^token +added +- +\*{8}$/m)
    expect(text).toMatch(/^text +changed +x +y{200}\.\.\.$/m)
    expect(text).toMatch(/^gone +removed +z +-$/m)
    expect(text).not.toContain('hunter')
  })

  it('shows what comes and goes of the settings, keys by type and comment', () => {
    const keys = { from: ['ssh-ed25519 AAAAC3Nz ada@shop'], to: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP'] }
    const text = show({
      settings: { ntpServers: { from: ['192.0.2.1', 'a'], to: ['192.0.2.2', 'a'] }, sshKeys: keys },
    })
    expect(text).toMatch(/NTP servers: - 192\.0\.2\.1\n +\+ 192\.0\.2\.2\n/)
    expect(text).toMatch(/SSH keys: - ssh-ed25519 ada@shop\n +\+ ssh-ed25519 \.\.\.1lZDI1NTE5AAAAIP/)
    expect(show({ settings: { ntpServers: { from: ['a', 'b'], to: ['b', 'a'] } } })).toContain(
      'another order',
    )
    expect(shortKey('ssh-rsa AAAA two words')).toBe('ssh-rsa two words')
  })

  it('says what restarts, that nothing differs, and why a change is not possible', () => {
    const effect = {
      target: 'kubernetes' as const,
      restarts: ['etcd', 'kubelet'],
      message: 'Kubernetes goes',
    }
    expect(show({ effects: [effect] })).toMatch(/^WHAT IS DONE +RESTARTS\nKubernetes goes +etcd, kubelet$/m)
    expect(show({ isEmpty: true })).toContain('nothing differs from what the host runs')
    const problems = [
      { code: 'ImageMissing', severity: 'error' as const, message: 'no image', pack: 'p1/web' },
    ]
    const bad = { isPossible: false, problems }
    expect(show({}, bad)).toMatch(
      /the change is not possible\n\nSEVERITY .*\nerror +ImageMissing +web +no image/,
    )
    expect(show({}, { ...bad, isHeld: true })).toContain('give them with --set or --set-file')
  })

  it('no line is wider than a narrow terminal, and a name of the host cannot move its cursor', () => {
    const found = {
      packs: [{ ...pack, name: 'web\u001b[31m' }],
      definition: { from: 'shop 1', to: 'shop 2' },
    }
    for (const columns of [40, 60]) {
      const text = show(found, {}, columns)
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
      expect(text).not.toContain('\u001b')
    }
  })
})
