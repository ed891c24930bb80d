// Files that a user gives to the program that answers: the place where one is chosen, and how far its bytes are.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { plain } from './format.ts'
import { Icon } from './icon.tsx'
import { sharedText } from './texts.ts'

/** The files of a folder by their paths in it. */
interface ChosenFolder {
  readonly name: string
  readonly files: ReadonlyMap<string, File>
}

interface FileDropProps {
  readonly title: string
  /** What can be chosen. */
  readonly hint: string
  /** Endings of names, with commas between. */
  readonly accept: string
}

interface FolderDropProps extends FileDropProps {
  /** Text of what chooses a folder. */
  readonly folder: string
  readonly onChoose: (chosen: File | ChosenFolder) => void
}

interface OneFileDropProps extends FileDropProps {
  readonly folder?: undefined
  readonly onChoose: (file: File) => void
}

/** A place to drop a file on, or a folder where that is of use, which also opens the list of files of this device. */
export function FileDrop(props: FolderDropProps | OneFileDropProps) {
  const { title, hint, accept } = props
  const [isOver, setOver] = useState(false)
  const [isFolder, setFolder] = useState(false)
  const take = (file: File | undefined) => {
    setFolder(false)
    if (file) props.onChoose(file)
  }
  async function takeDropped({ items, files }: DataTransfer): Promise<void> {
    const entry = items[0]?.webkitGetAsEntry()
    const [file] = files
    if (!isDirectory(entry)) take(file)
    else if (props.folder === undefined) setFolder(true)
    else props.onChoose({ name: entry.name, files: new Map(await filesIn(entry)) })
  }
  return (
    <>
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
          if (event.dataTransfer) void takeDropped(event.dataTransfer)
        }}
      >
        <Icon name="upload" />
        <strong>{title}</strong>
        <span class="dim">{hint}</span>
        {isFolder && <strong role="alert">{sharedText.value.noFolder}</strong>}
        <input
          class="hidden"
          type="file"
          accept={accept}
          onChange={(event) => {
            take(event.currentTarget.files?.[0])
            // The same file can be chosen again.
            event.currentTarget.value = ''
          }}
        />
      </label>
      {props.folder !== undefined && (
        <label class="field pad">
          <span>{props.folder}</span>
          <input
            type="file"
            // The types of preact do not know it.
            {...({ webkitdirectory: true } as object)}
            onChange={(event) => {
              const chosen = [...(event.currentTarget.files ?? [])]
              const [first] = chosen
              if (!first) return
              const [name = ''] = first.webkitRelativePath.split('/')
              const below = chosen.map(
                (file) => [file.webkitRelativePath.slice(name.length + 1), file] as const,
              )
              props.onChoose({ name, files: new Map(below) })
              event.currentTarget.value = ''
            }}
          />
        </label>
      )}
    </>
  )
}

const isDirectory = (entry: FileSystemEntry | null | undefined): entry is FileSystemDirectoryEntry =>
  entry?.isDirectory === true

/** The files of a folder that was dropped, and of those in it. @param above path of the folder, with a stroke at its end */
async function filesIn(folder: FileSystemDirectoryEntry, above = ''): Promise<(readonly [string, File])[]> {
  const found: (readonly [string, File])[] = []
  const reader = folder.createReader()
  for (;;) {
    // A browser gives at most 100 at a time, and none at the end.
    const entries = await new Promise<FileSystemEntry[]>((resolve, reject) =>
      reader.readEntries(resolve, reject),
    )
    if (entries.length === 0) return found
    for (const entry of entries) {
      const path = `${above}${entry.name}`
      if (isDirectory(entry)) found.push(...(await filesIn(entry, `${path}/`)))
      else found.push([path, await fileOf(entry as FileSystemFileEntry)])
    }
  }
}

const fileOf = (entry: FileSystemFileEntry) =>
  new Promise<File>((resolve, reject) => entry.file(resolve, reject))

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
