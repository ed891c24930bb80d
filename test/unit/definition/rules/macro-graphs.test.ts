import { describe, expect, it } from 'vitest'
import { cpuNow } from '../../../support/cpu-time.ts'
import { definitionOf, profileOf, profilePack } from '../../../support/definitions.ts'
import { createRandom, type Random } from '../../../support/random.ts'
import { appDefinition, render } from '../../../support/rendered-values.ts'

/** Values of packs: by `pack.key`, the texts and names that each is made of. */
type Graph = Map<string, readonly ({ readonly text: string } | { readonly name: string })[]>

function createGraph(random: Random, edges: number): Graph {
  const names = ['one', 'two', 'three'].flatMap((pack) =>
    ['a', 'b.c', 'd', 'e'].map((key) => `${pack}.${key}`),
  )
  return new Map(
    names.map((name) => [
      name,
      Array.from({ length: random.below(4) }, () =>
        random.isChosen(edges) ? { name: random.pick(names) } : { text: random.pick(['x', '-', 'y z', 'w']) },
      ),
    ]),
  )
}

const toDefinition = (graph: Graph) => {
  const values = new Map<string, string>()
  for (const [name, parts] of graph) {
    const pack = name.slice(0, name.indexOf('.'))
    const written = parts
      .map((part) => ('text' in part ? part.text : `{{ .spectro.pack.${part.name} }}`))
      .join('')
    values.set(pack, `${values.get(pack) ?? ''}${name.slice(pack.length + 1)}: "${written}"\n`)
  }
  return definitionOf([profileOf([...values].map(([pack, text]) => profilePack(pack, text)))])
}

/** The naive way: follow every name until the end, or until a name repeats. */
function expand(graph: Graph, name: string, above: readonly string[] = []): string | undefined {
  if (above.includes(name)) return undefined
  const parts = (graph.get(name) ?? []).map((part) =>
    'text' in part ? part.text : expand(graph, part.name, [...above, name]),
  )
  return parts.includes(undefined) ? undefined : parts.join('')
}

const reaches = (graph: Graph, from: string, to: string) => {
  const seen = new Set<string>()
  const open = [from]
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    for (const part of graph.get(name) ?? []) {
      if (!('name' in part) || seen.has(part.name)) continue
      seen.add(part.name)
      open.push(part.name)
    }
  }
  return seen.has(to)
}

describe('values of packs that hold each other', () => {
  it('values that contain each other and circles are those of a naive expansion', () => {
    let withCircle = 0
    for (let seed = 0; seed < 600; seed += 1) {
      const random = createRandom(seed)
      const graph = createGraph(random, random.pick([0.1, 0.3, 0.5]))
      const { texts, problems } = render(toDefinition(graph))
      const all = texts.map(({ content }) => content).join('')
      for (const [name, parts] of graph) {
        const line = new RegExp(`^${name.slice(name.indexOf('.') + 1)}: "(.*)"$`, 'm')
        const text = texts.find(({ packName }) => name.startsWith(`${packName}.`))?.content ?? ''
        const expected = parts
          .map((part) =>
            'text' in part ? part.text : (expand(graph, part.name) ?? `{{ .spectro.pack.${part.name} }}`),
          )
          .join('')
        expect(line.exec(text)?.[1]).toBe(expected)
      }
      const circular = [...graph.keys()].filter((name) => reaches(graph, name, name))
      const cycles = problems
        .filter(({ code }) => code === 'MacroCycle')
        .map(({ message }) => message.replace(/^.*circle: /, '').split(' -> '))
      expect(cycles.length > 0).toBe(circular.length > 0)
      for (const cycle of cycles) {
        expect(cycle.at(-1)).toBe(cycle[0])
        for (const [index, name] of cycle.slice(0, -1).entries()) {
          expect(circular).toContain(name)
          expect(graph.get(name)).toContainEqual({ name: cycle[index + 1] })
        }
      }
      expect(problems.filter(({ code }) => code !== 'MacroCycle')).toEqual([])
      if (circular.length > 0) withCircle += 1
      else expect(all).not.toContain('{{')
    }
    expect(withCircle).toBeGreaterThan(100)
    expect(withCircle).toBeLessThan(500)
  })

  it('values of packs may be a chain of 20,000', () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, index) => `k${index}: "{{ .spectro.pack.app.k${index + 1} }}"`,
    )
    const values = [...lines, 'k20000: end'].join('\n')
    const begin = cpuNow()
    const { texts, problems } = render(appDefinition(values))
    expect(cpuNow() - begin).toBeLessThan(4_000)
    expect(problems).toEqual([])
    expect(texts[0]?.content.match(/"end"/g)?.length).toBe(20_000)
  })

  it('values of packs may be a circle of 20,000, of which the message shows the first names', () => {
    const lines = Array.from(
      { length: 20_000 },
      (_, index) => `k${index}: "{{ .spectro.pack.app.k${(index + 1) % 20_000} }}"`,
    )
    const { problems } = render(appDefinition(lines.join('\n')))
    expect(problems.map(({ code }) => code)).toEqual(['MacroCycle'])
    expect(problems[0]?.message.length).toBeLessThan(2_000)
  })

  it('values of packs that double until they fill the memory are refused', () => {
    const lines = Array.from(
      { length: 60 },
      (_, index) => `k${index}: "{{ .spectro.pack.app.k${index + 1} }}{{ .spectro.pack.app.k${index + 1} }}"`,
    )
    const { problems } = render(appDefinition([...lines, 'k60: x'].join('\n')))
    expect(problems.some(({ code }) => code === 'MacroTooLong')).toBe(true)
  })
})
