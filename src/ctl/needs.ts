import type { ContentNeed } from '../cluster/schemas.ts'
import { amount, oneLine, plural, type Column, type Fact } from './layout.ts'

/** A program or a chart with its version. */
const titleOf = ({ kind, name, version }: ContentNeed): string =>
  kind === 'image' || version === undefined ? name : `${name} ${version}`

/** Columns of a list of needed content. @param here what the content was looked for in; undefined if in nothing */
export const needColumns = (here: string | undefined): readonly Column<ContentNeed>[] => [
  { title: 'KIND', read: ({ kind }) => kind },
  { title: 'NAME', read: (need) => oneLine(titleOf(need)), isFlexible: true },
  { title: 'NEEDED BY', read: ({ origin }) => oneLine(origin), isFlexible: true },
  ...(here === undefined
    ? []
    : [
        {
          title: 'SIZE',
          read: ({ sizeBytes }: ContentNeed) => (sizeBytes === undefined ? '' : amount(sizeBytes)),
        },
        { title: here, read: ({ isThere }: ContentNeed) => (isThere === true ? 'yes' : 'no') },
      ]),
  { title: 'WHY', read: ({ reason = '' }) => oneLine(reason), isFlexible: true },
]

/** Missing things, in a line. @param where for example `on this host` */
export function missingFact(needs: readonly ContentNeed[], where: string): Fact {
  const missing = needs.filter(({ isRequired, isThere }) => isRequired && isThere !== true)
  const kinds = (['image', 'chart', 'program'] as const).flatMap((kind) => {
    const ofKind = missing.filter((need) => need.kind === kind).length
    return ofKind === 0 ? [] : [plural(ofKind, kind)]
  })
  return missing.length === 0
    ? { label: 'Content', lines: [`all that is needed is ${where}`], mood: 'good' }
    : { label: 'Content', lines: [`not ${where}: ${kinds.join(', ')}`], mood: 'bad' }
}
