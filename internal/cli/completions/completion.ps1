# Completion of atip-exec and atip for PowerShell, written by `atip completion powershell`.
Register-ArgumentCompleter -Native -CommandName 'atip-exec', 'atip' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
    & atip __complete line "begun:$wordToComplete" -- $words 2>$null | ForEach-Object {
        $word, $text = $_ -split "`t", 2
        if (-not $text) { $text = $word }
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', $text)
    }
}
