// Files that a user gives to the program that answers: the place where one is chosen, and how far its bytes are.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { plain } from './format.ts'
import { Icon } from './icon.tsx'

interface FileDropProps {
  readonly title: string
  /** What can be chosen. */
  readonly hint: string
  /** Endings of names, with commas between. */
  readonly accept: string
  readonly onChoose: (file: File) => void
}

/** A place to drop a file on, which also opens the list of files of this device. */
export function FileDrop({ title, hint, accept, onChoose }: FileDropProps) {
  const [isOver, setOver] = useState(false)
  const take = (files: FileList | null | undefined) => {
    const [file] = files ?? []
    if (file) onChoose(file)
  }
  return (
    <label
      class={`drop ${isOver ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setOver(true)
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault()
        setOver(false)
        take(event.dataTransfer?.files)
      }}
    >
      <Icon name="upload" />
      <strong>{title}</strong>
      <span class="dim">{hint}</span>
      <input
        class="hidden"
        type="file"
        accept={accept}
        onChange={(event) => {
          take(event.currentTarget.files)
          // The same file can be chosen again.
          event.currentTarget.value = ''
        }}
      />
    </label>
  )
}

interface TransferProps {
  readonly fileName: string
  /** Of its style. */
  readonly state: string
  /** Bytes; without `sent` it is not known how far it is, without both there is no bar. */
  readonly total?: number | undefined
  readonly sent?: number | undefined
  readonly button: ComponentChildren
  readonly children: ComponentChildren
}

/** A file on its way, or its end. */
export const Transfer = ({ fileName, state, total, sent, button, children }: TransferProps) => (
  <div class={`uploading ${state}`}>
    <div class="row">
      <strong class="file">{plain(fileName)}</strong>
      <div class="buttons">{button}</div>
    </div>
    {total !== undefined && (
      <progress
        aria-label={plain(fileName)}
        max={total || 1}
        {...(sent === undefined ? {} : { value: sent })}
      />
    )}
    {children}
  </div>
)
