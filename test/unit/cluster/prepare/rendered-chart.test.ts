import { describe, expect, it } from 'vitest'
import { readRenderedChart } from '../../../../src/cluster/prepare/charts.ts'

const deployment = (container: string, pod = '') => `---
# Source: shop/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec: {template: {spec: {${pod}containers: [{name: shop, image: "shop:1", ${container}}]}}}
`

describe('a list with a key twice in a rendered chart', () => {
  it('is a warning with the template, the object and the list where the API server takes it', () => {
    const text = deployment('env: [{name: MODE, value: a}, {name: MODE, value: b}]')
    const { problems, warnings } = readRenderedChart(text)
    expect(problems).toEqual([])
    expect(warnings).toEqual([
      'has in shop/templates/deployment.yaml a Deployment shop, whose list spec.template.spec.containers[0].env has name=MODE twice; server-side apply refuses it and a later change may lose both, so leave one out',
    ])
  })

  it.each([
    ['volumes', deployment('env: []', 'volumes: [{name: data}, {name: data}], '), 'volumes has name=data'],
    [
      'paths of mounts',
      deployment('volumeMounts: [{name: a, mountPath: /data}, {name: b, mountPath: /data}]'),
      'volumeMounts has mountPath=/data',
    ],
    [
      'ports of a service',
      '---\n# Source: shop/templates/service.yaml\napiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {ports: [{name: a, port: 80}, {name: b, port: 80, protocol: TCP}]}\n',
      'spec.ports has port=80, protocol=TCP',
    ],
  ])('is refused where the API server refuses it: %s', (_what, text, list) => {
    const { problems, warnings } = readRenderedChart(text)
    expect(warnings).toEqual([])
    expect(problems).toEqual([
      expect.stringMatching(/^has in shop\/templates\/\w+\.yaml a \w+ shop, whose list /) as unknown,
    ])
    expect(problems[0]).toContain(`${list} twice; Kubernetes refuses it`)
  })

  it('is nothing where keys differ', () => {
    const { problems, warnings } = readRenderedChart(
      deployment(
        'ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}], env: [{name: A}, {name: B}]',
      ),
    )
    expect([problems, warnings]).toEqual([[], []])
  })
})
