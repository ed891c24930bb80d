import { describe, expect, it } from 'vitest'
import { compareOrder, readPackSettings } from '../../../../src/cluster/prepare/packs.ts'
import { readPlain } from '../../../../src/definition/rules/plain-values.ts'
import { stagesIn } from '../../../../src/cluster/prepare/resolve.ts'
import { profilePack } from '../../../support/definitions.ts'

const plain = (text: string) => readPlain(text).documents[0] as Readonly<Record<string, unknown>>
const settings = (text: string) => readPackSettings(plain(text))

describe('the key pack of values', () => {
  it.each([
    ['nothing', 'a: 1', []],
    ['a namespace', 'pack: {namespace: shop}', ['shop']],
    ['a namespace of every cluster', 'pack: {namespace: kube-system}', []],
    ['more namespaces as a list', 'pack: {namespace: a, additionalNamespaces: [b, a, c]}', ['a', 'b', 'c']],
    ['more namespaces as a text', 'pack: {namespace: a, additionalNamespaces: "b, c"}', ['a', 'b', 'c']],
    [
      'more namespaces as a mapping',
      'pack: {namespace: a, additionalNamespaces: {b: "", c: ""}}',
      ['a', 'b', 'c'],
    ],
    ['a namespace that only has labels', 'pack: {namespaceLabels: {b: "x=y"}}', ['b']],
  ])('has the namespaces of %s', (_, text, expected) => {
    expect(settings(text).namespaces.map(({ name }) => name)).toEqual(expected)
  })

  it('gives namespaces labels and annotations, also those that every cluster has', () => {
    const { namespaces } = settings(
      [
        'pack:',
        '  namespace: kube-system',
        '  additionalNamespaces: [web]',
        '  namespaceLabels:',
        '    kube-system: pod-security.kubernetes.io/enforce=privileged,pod-security.kubernetes.io/enforce-version=v1.34',
        '    web: plain',
        '  namespaceAnnotations:',
        '    web: [a=b=c, d=e]',
      ].join('\n'),
    )
    expect(namespaces).toEqual([
      {
        name: 'kube-system',
        labels: {
          'pod-security.kubernetes.io/enforce': 'privileged',
          'pod-security.kubernetes.io/enforce-version': 'v1.34',
        },
        annotations: {},
      },
      { name: 'web', labels: { plain: '' }, annotations: { a: 'b=c', d: 'e' } },
    ])
  })

  it('names releases, images and charts; texts of numbers are texts', () => {
    const found = settings(
      'pack:\n  releaseNameOverride: {web: shop-web}\n  content:\n    images:\n      - image: a:1\n      - image: ""\n      - b:2\n    charts:\n      - {repo: x, name: web, version: 1.5}\n',
    )
    expect([...found.releaseNames]).toEqual([['web', 'shop-web']])
    expect(found.images).toEqual(['a:1', 'b:2'])
    expect(found.charts).toEqual([{ name: 'web', version: '1.5' }])
  })

  it.each([
    ['pack: {spectrocloud.com/install-priority: "-5"}', -5],
    ['spectrocloud.com/install-priority: 20', 20],
    ['pack: {spectrocloud.com/install-priority: "99999999999"}', 99_999_999_999],
    [`pack: {spectrocloud.com/install-priority: "-${'9'.repeat(400)}"}`, -Number.MAX_SAFE_INTEGER],
    ['pack: {}', 0],
    ['pack: {spectrocloud.com/install-priority: ""}', 0],
  ])('has the install priority of %s', (text, expected) => {
    expect(settings(text)).toMatchObject({ priority: expected, problems: [] })
  })

  it('what cannot be used is named: a priority that is no integer, a namespace that Kubernetes refuses', () => {
    const { priority, namespaces, problems } = settings(
      'pack: {namespace: Shop, spectrocloud.com/install-priority: first}',
    )
    expect([priority, namespaces]).toEqual([0, []])
    expect(problems).toMatchObject([
      { code: 'NamespaceInvalid', severity: 'error', message: expect.stringContaining('"Shop"') as string },
      {
        code: 'PackPriorityInvalid',
        severity: 'warning',
        message: expect.stringContaining('"first"') as string,
      },
    ])
  })
})

describe('the order of installation', () => {
  const pack = (layer: string, priority: string) => ({
    pack: profilePack(`${layer} ${priority}`.trim(), '', { layer }),
    settings: settings(priority === '' ? 'a: 1' : `pack: {spectrocloud.com/install-priority: ${priority}}`),
  })

  it('is the CNI with what comes with Kubernetes, then storage, then add-ons by priority, whatever the priority of a layer', () => {
    const packs = [
      ...[pack('addon', '10'), pack('csi', ''), pack('addon', ''), pack('cni', '99')],
      ...[pack('addon', '-1'), pack('k8s', ''), pack('', '10')],
    ]
    expect(packs.toSorted(compareOrder).map((each) => each.pack.name)).toEqual([
      'cni 99',
      'k8s',
      'csi',
      'addon -1',
      'addon',
      'addon 10',
      '10',
    ])
    expect(compareOrder(pack('cni', '99'), pack('k8s', ''))).toBe(0)
    expect(compareOrder(pack('addon', '10'), pack('', '10'))).toBe(0)
  })
})

describe('stages of infrastructure packs', () => {
  it('are told as the files, folders and sysctls that they would make', () => {
    const text = [
      'stages:',
      '  initramfs:',
      '    - name: policy',
      '      files:',
      '        - path: /etc/kubernetes/audit-policy.yaml',
      '          content: x',
      '      sysctl: {vm.overcommit_memory: 1, kernel.panic: "10"}',
      '  boot:',
      '    - directories: [{path: /var/log/apiserver}]',
      '    - commands: [true]',
    ].join('\n')
    expect(stagesIn(plain(text))).toEqual([
      ...['/etc/kubernetes/audit-policy.yaml', '/var/log/apiserver'],
      ...['kernel.panic=10', 'vm.overcommit_memory=1'],
    ])
    expect(stagesIn(plain('stages: 1'))).toEqual([])
  })
})
