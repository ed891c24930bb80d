import { describe, expect, it } from 'vitest'
import { parseExactJson } from '../../../../../src/base/json.ts'
import { differences } from '../../../../../src/cluster/packs/put-right.ts'
import type { KubernetesObject } from '../../../../../src/kubernetes/client.ts'

const quota = (most: string) =>
  parseExactJson(
    `{"apiVersion":"plant.example/v1","kind":"Quota","metadata":{"name":"big"},"spec":{"most":${most}}}`,
  ) as KubernetesObject

describe('numbers beyond 2^53', () => {
  it('are the same with the same digits', () => {
    expect(differences(quota('9223372036854775807'), quota('9223372036854775807'))).toEqual([])
  })

  it.each(['9223372036854775806', '9223372036854776000', '7'])(
    'differ from %s, which JavaScript may round to the same',
    (other) => {
      expect(differences(quota('9223372036854775807'), quota(other))).toEqual(['spec.most'])
    },
  )
})
