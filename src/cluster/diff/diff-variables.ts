import { createGivenTo } from '../../definition/rules/variables.ts'
import type { Variable } from '../../definition/schemas.ts'
import type { VariableChange } from './schemas.ts'
import type { DiffSide } from './side.ts'

type VariableSide = Pick<DiffSide, 'profiles' | 'given'>

interface VariableValue {
  readonly profileUid: string
  readonly name: string
  readonly isSensitive: boolean
  readonly value: string
}

/** Variables whose values differ, in the order of their declarations; then those that are no longer declared. Pure. */
export function diffVariables(before: VariableSide, after: VariableSide): VariableChange[] {
  const [were, are] = [valuesOf(before), valuesOf(after)]
  const present = [...are].flatMap(([key, each]): VariableChange[] => {
    const was = were.get(key)
    if (was === undefined) return [{ ...shown(each), change: 'added', ...ifShown(each, { to: each.value }) }]
    if (was.value === each.value) return []
    // Masked also where only one of the two definitions says that it is sensitive.
    const isSensitive = was.isSensitive || each.isSensitive
    const values = { from: was.value, to: each.value }
    return [{ ...shown(each), isSensitive, change: 'changed', ...ifShown({ isSensitive }, values) }]
  })
  const gone = [...were].flatMap(([key, was]): VariableChange[] =>
    are.has(key) ? [] : [{ ...shown(was), change: 'removed', ...ifShown(was, { from: was.value }) }],
  )
  return [...present, ...gone]
}

const shown = ({ profileUid, name, isSensitive }: VariableValue) => ({ profileUid, name, isSensitive })

const ifShown = <Values>({ isSensitive }: Pick<VariableValue, 'isSensitive'>, values: Values) =>
  isSensitive ? {} : values

function valuesOf({ profiles, given }: VariableSide): ReadonlyMap<string, VariableValue> {
  const givenTo = createGivenTo(given)
  return new Map(
    profiles.flatMap(({ profileUid, variables }) =>
      variables.map((variable): [string, VariableValue] => {
        const { name, isSensitive = false } = variable
        const value = valueIn(variable, givenTo({ uid: profileUid }, name))
        return [`${profileUid}\0${name}`, { profileUid, name, isSensitive, value }]
      }),
    ),
  )
}

/** As `valueOf` of the rules, from what the API shows of a definition. */
function valueIn({ defaultValue, options = [], immutable }: Variable, given: string | undefined): string {
  if (given !== undefined && !(given === '' && immutable === true)) return given
  return defaultValue ?? options.find((option) => option.default === true)?.value ?? ''
}
