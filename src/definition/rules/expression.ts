import type { Value } from './functions/value.ts'

/** A reference of a macro: `.spectro.<kind>.<name>`. */
export interface Reference {
  readonly kind: 'var' | 'system' | 'pack' | 'macro'
  /** The text after the kind: `NAME`, `cluster.name`, `pack.path.to.value`. */
  readonly name: string
}

export type Expression =
  | { readonly kind: 'literal'; readonly value: Value }
  | { readonly kind: 'reference'; readonly reference: Reference }
  | { readonly kind: 'call'; readonly name: string; readonly values: readonly Expression[] }
  | { readonly kind: 'field'; readonly of: Expression; readonly name: string }
